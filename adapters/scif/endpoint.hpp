// SPDX-License-Identifier: Apache-2.0
// One endpoint and its states. What returns an int returns a value >= 0, or an errno value negated.
//
//   unbound --bind--> bound --listen--> listening
//      |                | ^
//      +----connect-----+ | refused, or nobody accepted
//                       v |
//                   connecting --accepted--> connected (disconnected, once the peer is gone)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include <scif.h>

#include "adapters/scif/line.hpp"
#include "adapters/scif/link.hpp"
#include "adapters/scif/slot.hpp"
#include "fabric/shm/connection.hpp"

namespace wherry::scif {

enum class State : std::uint8_t { unbound, bound, listening, connecting, connected };

class Endpoint {
 public:
  /// A new one. Throws Error.
  static std::unique_ptr<Endpoint> open();

  /// Throws Error.
  explicit Endpoint(int descriptor);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Leaves the descriptor alone.
  ~Endpoint();

  [[nodiscard]] int descriptor() const { return line_.descriptor(); }
  /// Whether the descriptor is still this endpoint's socket: programs close(2) it behind the library's back.
  [[nodiscard]] bool is_current() const;

  int bind(std::uint16_t port);
  int listen(int backlog);
  int connect(const scif_portID& to);
  /// Puts the new endpoint into `accepted`.
  int accept(scif_portID& peer, bool wait, std::unique_ptr<Endpoint>& accepted);

  /// The link of a connected endpoint, also when the peer is gone. Null: it never was connected. Finishes a connection
  /// attempt that was answered.
  Link* link() {
    if (state_.load(std::memory_order_acquire) == State::connected) return link_.get();  // SCIF-STATE
    return link_if_answered();
  }
  /// The same for who holds a lock of the slot: only if it is known already.
  // SCIF-STATE acquire: the link is there.
  Link* known_link() { return state_.load(std::memory_order_acquire) == State::connected ? link_.get() : nullptr; }
  [[nodiscard]] Line& line() { return line_; }
  /// Whether the peer is gone, or the descriptor is no longer this endpoint's socket. Asks the kernel unless that was
  /// done a moment ago.
  bool look_for_end() { return line_.gone() || (line_.is_due(1) && (line_.ask_for_end() || !is_current())); }

  /// The events of poll(2) that SCIF means, given what the kernel said of the descriptor. The program must be told.
  short events(short asked, short kernel);
  /// What to ask the kernel for.
  short kernel_events(short asked);

  /// Wakes every thread that sleeps in a call; later calls of them fail.
  void wake_all() { line_.sleepers().wake(); }

  // The table's (table.hpp): written under Slot::table.
  std::atomic<std::uint32_t> users{0};

 private:
  struct Attempt;

  Link* link_if_answered();
  int collect();
  int start(const scif_portID& to, bool may_wait);
  int await_answer(std::unique_lock<std::mutex>& lock);
  int try_finish();
  int fail_attempt(int error);
  void renew_socket();
  void remember_inode();
  int take_request(scif_portID& peer, std::unique_ptr<Endpoint>& accepted);
  int answer(std::unique_ptr<Endpoint>& made, scif_portID& peer, fabric::Deadline patience);

  Slot& slot_;
  Line line_;
  std::atomic<std::uint64_t> inode_{0};
  std::atomic<State> state_{State::unbound};
  std::mutex mutex_;  ///< guards what follows, not while anybody waits
  std::uint16_t port_ = 0;
  std::unique_ptr<Attempt> attempt_;
  int outcome_ = 0;  ///< of an attempt that the program has not asked for yet: an errno value
  bool uncollected_ = false;
  std::unique_ptr<Link> link_;
};

}  // namespace wherry::scif
