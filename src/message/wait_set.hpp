// SPDX-License-Identifier: Apache-2.0
// Waits for any of several connections and descriptors. A single connection is waited for by its own bell. Several, or
// a descriptor for the program's event loop, need an epoll set.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "base/unique_fd.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/fabric.hpp"

namespace wherry::message {

class WaitSet {
 public:
  explicit WaitSet(fabric::Bell bell) : bell_(bell) {}

  // Setting up (throws Error) and taking down.
  void join(fabric::Connection& member);
  void leave(fabric::Connection& member) noexcept;
  void watch(int descriptor);
  void unwatch(int descriptor) noexcept;
  /// Readable while a member's bell is rung, a member's peer is gone, a watched descriptor is readable, or `notify`
  /// was called after the last `silence_self`. Owned by the wait set.
  int descriptor();

  /// Sleeps until a member or descriptor has an event, unless `ready()` after every member is armed.
  template <class Ready>
  void sleep_unless(fabric::Deadline deadline, Ready&& ready) {
    silence_self();
    arm();
    if (!ready()) sleep(deadline);
    for (fabric::Connection* member : members_) member->disarm(bell_);
  }
  /// When and on which CPU a member's peer last rang.
  [[nodiscard]] std::optional<fabric::Connection::Notification> last_notification() const;
  /// Keeps the descriptor's rule: every bell is armed, or the descriptor is readable.
  template <class Ready>
  void rearm(Ready&& ready) {
    silence_self();
    arm();
    if (ready()) notify();
  }
  /// Ends the current sleep. From any thread.
  void notify() noexcept;

 private:
  void make_epoll();
  static void add(const UniqueFd& epoll, int descriptor);
  void arm();
  void silence_self() noexcept;
  void sleep(fabric::Deadline deadline) noexcept;

  const fabric::Bell bell_;
  std::vector<fabric::Connection*> members_;
  std::vector<int> watched_;
  UniqueFd epoll_;
  std::optional<fabric::EventBell> own_;  ///< only with an epoll set
  std::mutex mutex_;                      ///< guards what notify() uses
};

}  // namespace wherry::message
