// SPDX-License-Identifier: Apache-2.0
// The doorbells of all pairs of a mailbox, in one epoll set. The cost of a receive grows with the active pairs, not
// with all pairs. A pair is either
//
//  - idle: its bell is armed, and nothing had arrived after that. The peer will ring; the kernel's list of ready
//    descriptors names the pair.
//  - active: it had traffic recently. Its words are polled without a system call, and the peer need not ring.
//
// May include: base, fabric.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "fabric/event_bell.hpp"
#include "mailbox/pair.hpp"

namespace wherry::mailbox {

class Doorbells {
 public:
  /// Throws Error.
  Doorbells();

  /// Adds a descriptor to the epoll set. Throws Error.
  void watch(int descriptor, Source& source);
  void unwatch(int descriptor) noexcept;
  /// Adds the bells of a pair that opens. The pair is active at first. Throws Error.
  void join(Pair& pair);
  /// Removes a pair.
  /// @param unwatches  false in a forked child, whose epoll set is its parent's
  void leave(Pair& pair, bool unwatches) noexcept;
  /// Removes the bells of a pair whose peer is gone: they would stay readable for ever.
  void stop_watching(Pair& pair) noexcept;

  void activate(Pair& pair) noexcept;
  /// Moves a pair whose bell is armed to the idle list.
  void set_idle(Pair& pair) noexcept;
  [[nodiscard]] std::list<Pair*>& active() noexcept { return active_; }
  [[nodiscard]] std::list<Pair*>& idle() noexcept { return idle_; }
  /// Changes whenever a pair becomes active, or is no longer.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// Moves the pair to the end of the active list, so that the next one has its turn.
  void end_turn(Pair& pair) noexcept { active_.splice(active_.end(), active_, pair.place); }

  /// Takes the pending events, without sleeping. Returns the filled part of `into`. If the kernel refuses the call,
  /// sets `refused` and returns nothing.
  std::span<Source*> take(std::span<Source*> into, bool& refused) noexcept;
  /// Sleeps until an event is pending. False: the deadline passed.
  bool sleep(const fabric::Deadline& deadline) noexcept;

  /// The last pair whose data bell was taken since clear_rung(). Null: none, or it has left.
  [[nodiscard]] Pair* rung() const noexcept { return rung_; }
  void set_rung(Pair& pair) noexcept { rung_ = &pair; }
  void clear_rung() noexcept { rung_ = nullptr; }

  // This mailbox's own bell, in the same epoll set.

  /// Ends the current sleep, or the next one. From any thread.
  void notify_self() noexcept { own_.notify(); }
  /// Silences the own bell, unless it rings for signal_descriptor().
  void silence_self() noexcept {
    if (!signalled_) own_.silence();
  }
  /// Returns the epoll set, for a program that polls it. From now on signal_descriptor() makes it readable.
  int descriptor() noexcept {
    exposed_ = true;
    return epoll_.get();
  }
  [[nodiscard]] bool is_exposed() const noexcept { return exposed_; }
  /// Makes the descriptor readable because of an event for which no armed bell rings: an active pair, or one found
  /// already.
  void signal_descriptor() noexcept {
    if (exposed_ && !std::exchange(signalled_, true)) own_.notify();
  }
  void silence_descriptor() noexcept {
    if (std::exchange(signalled_, false)) own_.silence();
  }

 private:
  UniqueFd epoll_;
  fabric::EventBell own_;
  Source interruption_{Source::Kind::interruption};
  std::list<Pair*> active_;
  std::list<Pair*> idle_;
  std::uint64_t version_ = 0;
  Pair* rung_ = nullptr;
  bool exposed_ = false;    ///< the program has asked for the descriptor
  bool signalled_ = false;  ///< the own bell rings to make the descriptor readable
};

}  // namespace wherry::mailbox
