// SPDX-License-Identifier: Apache-2.0
// One endpoint and its states. What returns an int returns a value >= 0, or an errno value negated.
//
//   unbound --bind--> bound --listen--> listening
//      |                | ^
//      +----connect-----+ | refused, or not accepted in time
//                       v |
//                   connecting --accepted--> connected (disconnected, once the peer is gone)
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include <scif.h>

#include "adapters/scif/endpoint_entry.hpp"
#include "adapters/scif/endpoint_waiter.hpp"
#include "adapters/scif/link.hpp"
#include "base/unique_fd.hpp"

namespace wherry::scif {

enum class State : std::uint8_t { unbound, bound, listening, connecting, connected };

class Endpoint;

/// An endpoint that is not in the table yet.
struct Opened {
  std::unique_ptr<Endpoint> endpoint;
  UniqueFd socket;
};

/// Calls are given the descriptor, one of those of the socket, that their caller was given.
class Endpoint {
 public:
  /// A new one. Throws Error.
  static Opened open();

  explicit Endpoint(int fd);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Leaves the descriptors alone.
  ~Endpoint();

  int bind(int fd, std::uint16_t port);
  int listen(int fd, int backlog);
  int connect(int fd, const scif_portID& to);
  int accept(int fd, scif_portID& peer, bool wait, Opened& accepted);

  /// The link of a connected endpoint, also when the peer is gone. Null: it never was connected. Finishes a connection
  /// attempt that was answered.
  Link* link(int fd) {
    if (state_.load(std::memory_order_acquire) == State::connected) return link_.get();  // SCIF-STATE
    return link_if_answered(fd);
  }
  /// The same for callers that hold a lock of the entry: only if it is known already.
  // SCIF-STATE acquire: the link is there.
  Link* known_link() { return state_.load(std::memory_order_acquire) == State::connected ? link_.get() : nullptr; }
  [[nodiscard]] EndpointWaiter& waiter() { return waiter_; }
  [[nodiscard]] EndpointEntry& entry() { return entry_; }
  /// The descriptor that the peer is told of is no longer there, but this one is.
  void go_by(int fd) {
    if (Link* link = known_link(); link != nullptr) link->show(fd, waiter_.socket());
  }

  /// The events of poll(2) that SCIF means, given what the kernel said of the descriptor. The program must be told.
  short events(short asked, short kernel);
  /// What to ask the kernel for.
  short kernel_events(short asked);

  /// Wakes every thread that sleeps in a call; later calls of them fail.
  void wake_all() { waiter_.sleepers().wake(); }

  /// In a forked child: the calls that its parent's other threads were in do not go on here.
  void forget_parents();

  // The table's (table.hpp): written under EndpointEntry::table.
  std::atomic<std::uint32_t> users{0};

 private:
  struct Attempt;

  static constexpr std::uint64_t kUsedUp = 0;  ///< no process's: the socket was connected, and another must replace it

  Link* link_if_answered(int fd);
  int collect();
  int start(int fd, const scif_portID& to, bool may_wait);
  int await_answer(int fd, std::unique_lock<std::mutex>& lock);
  int try_finish(int fd);
  int fail_attempt(int fd, int error);
  void take_own_socket(int fd);
  void renew_socket(int fd);
  int take_request(int fd, scif_portID& peer, Opened& accepted);
  int answer(Opened& made, scif_portID& peer, std::chrono::steady_clock::time_point deadline);

  EndpointEntry& entry_;
  EndpointWaiter waiter_;
  std::atomic<State> state_{State::unbound};
  std::mutex mutex_;          ///< guards what follows; no call waits with it
  std::uint64_t generation_;  ///< of the process that made the socket, or kUsedUp
  std::uint16_t port_ = 0;
  std::unique_ptr<Attempt> attempt_;
  int outcome_ = 0;  ///< of an attempt that the program has not asked for yet: an errno value
  bool uncollected_ = false;
  std::unique_ptr<Link> link_;
};

}  // namespace wherry::scif
