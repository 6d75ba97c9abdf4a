// SPDX-License-Identifier: Apache-2.0
// A wait set: waits for any of several connections and descriptors. One connection alone is waited for by its own
// bell; more, or a descriptor for the program's own event loop, by an epoll set. May include: base, layout, fabric,
// stream.
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

  // Setting up: throw Error; and taking down.
  void join(fabric::Connection& member);
  void leave(fabric::Connection& member) noexcept;
  void watch(int descriptor);
  void unwatch(int descriptor) noexcept;
  /// Readable while a member's bell is rung, a member's peer is gone, a watched descriptor is readable, or `notify`
  /// was called after the last `quieten`. Owned by the wait set.
  int descriptor();

  /// Sleeps until there is news, unless `ready()` once every member is armed.
  template <class Ready>
  void sleep_unless(fabric::Deadline deadline, Ready&& ready) {
    quieten();
    arm();
    if (!ready()) sleep(deadline);
    for (fabric::Connection* member : members_) member->disarm(bell_);
  }
  /// When and where a member's peer last rang.
  [[nodiscard]] std::optional<fabric::Connection::Notification> last_notification() const;
  /// With a descriptor in use every bell is always armed, or the descriptor readable.
  template <class Ready>
  void rearm(Ready&& ready) {
    quieten();
    arm();
    if (ready()) notify();
  }
  /// Ends the sleep that is under way here, from any thread.
  void notify() noexcept;

 private:
  void make_epoll();
  void add(int descriptor);
  void arm();
  void quieten() noexcept;
  void sleep(fabric::Deadline deadline) noexcept;

  const fabric::Bell bell_;
  std::vector<fabric::Connection*> members_;
  std::vector<int> watched_;
  UniqueFd epoll_;
  std::optional<fabric::EventBell> own_;  ///< with an epoll only
  std::mutex mutex_;                      ///< held to change what notify() uses, and by it
};

}  // namespace wherry::message
