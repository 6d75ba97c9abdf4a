// SPDX-License-Identifier: Apache-2.0
// One endpoint and its states. Functions that return an int return a value >= 0, or a negative errno value.
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

/// Calls take the descriptor that the program passed, which is one of those of the socket.
class Endpoint {
 public:
  /// Opens a new endpoint. Throws Error.
  static Opened open();

  explicit Endpoint(int fd);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Does not close the descriptors.
  ~Endpoint();

  int bind(int fd, std::uint16_t port);
  int listen(int fd, int backlog);
  int connect(int fd, const scif_portID& to);
  int accept(int fd, scif_portID& peer, bool wait, Opened& accepted);

  /// Returns the link of a connected endpoint, even if the peer is gone. Null if it was never connected. Completes a
  /// connection attempt that was answered.
  Link* link(int fd) {
    if (state_.load(std::memory_order_acquire) == State::connected) return link_.get();  // SCIF-STATE
    return link_if_answered(fd);
  }
  /// The same for callers that hold a lock of the entry. Does not complete an attempt.
  // SCIF-STATE acquire: the link is there.
  Link* known_link() { return state_.load(std::memory_order_acquire) == State::connected ? link_.get() : nullptr; }
  [[nodiscard]] EndpointWaiter& waiter() { return waiter_; }
  [[nodiscard]] EndpointEntry& entry() { return entry_; }
  /// Tells the peer that the socket has this descriptor, in case the one that it knows was closed.
  void go_by(int fd) {
    if (Link* link = known_link(); link != nullptr) link->show(fd, waiter_.socket());
  }

  /// Returns the events of poll(2) in SCIF's meaning, given the kernel's events of the descriptor. The caller must
  /// report them to the program.
  short events(short asked, short kernel);
  /// Returns the events to ask the kernel for.
  short kernel_events(short asked);

  /// Wakes every thread that sleeps in a call. Calls fail from then on.
  void wake_all() { waiter_.sleepers().wake(); }

  /// To be called in a forked child: forgets the calls of the parent's other threads, which do not exist here.
  void forget_parents();

  // Belongs to the table (table.hpp). Written under EndpointEntry::table.
  std::atomic<std::uint32_t> users{0};

 private:
  struct Attempt;

  static constexpr std::uint64_t kUsedUp = 0;  ///< of no process: the socket was connected once, and must be replaced

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
  std::mutex mutex_;          ///< guards the members below; not held while a call waits
  std::uint64_t generation_;  ///< of the process that made the socket, or kUsedUp
  std::uint16_t port_ = 0;
  std::unique_ptr<Attempt> attempt_;
  int outcome_ = 0;  ///< errno value of an attempt whose outcome the program has not asked for yet
  bool uncollected_ = false;
  std::unique_ptr<Link> link_;
};

}  // namespace wherry::scif
