// SPDX-License-Identifier: Apache-2.0
// The doorbell summary of a mailbox. A pair is either
//
//  - idle: its bell is armed, and there was nothing after that. The peer will ring, and the bell is in one epoll set
//    with all others: the kernel's list of what is ready is the summary.
//  - active: it had something lately. Its words are looked at directly, without a system call, and the peer is spared
//    the ringing.
//
// So the cost of a receive grows with the pairs that talk, not with those that exist. May include: base, fabric.
#pragma once

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

  /// Watches a descriptor. Throws Error.
  void watch(int descriptor, Source& source);
  void unwatch(int descriptor) noexcept;
  /// Watches the bells of a pair that opens. It is active at first. Throws Error.
  void join(Pair& pair);
  /// `unwatches` unless this is a forked child, whose epoll set is its parent's.
  void leave(Pair& pair, bool unwatches) noexcept;
  /// The peer is gone: its bells would ring for ever.
  void stop_watching(Pair& pair) noexcept;

  void activate(Pair& pair) noexcept;
  /// Its bell is armed.
  void set_idle(Pair& pair) noexcept;
  [[nodiscard]] std::list<Pair*>& active() noexcept { return active_; }
  [[nodiscard]] std::list<Pair*>& idle() noexcept { return idle_; }
  /// Lets the next in the list have its turn.
  void end_turn(Pair& pair) noexcept { active_.splice(active_.end(), active_, pair.place); }

  /// Takes the events that there are into `into`, without sleeping. Returns those; nothing, and `refused`, where the
  /// kernel refuses the call.
  std::span<Source*> take(std::span<Source*> into, bool& refused) noexcept;
  /// Sleeps until there are events. False: the deadline passed.
  bool sleep(const fabric::Deadline& deadline) noexcept;

  /// The pair whose data bell was taken last since clear_rung(). Null: none, or it has left.
  [[nodiscard]] Pair* rung() const noexcept { return rung_; }
  void set_rung(Pair& pair) noexcept { rung_ = &pair; }
  void clear_rung() noexcept { rung_ = nullptr; }

  // The own bell, in the same set.

  /// Makes the sleep that is under way, or the next one, return. From any thread.
  void notify_self() noexcept { own_.notify(); }
  /// The own bell was taken.
  void silence_self() noexcept {
    if (!signalled_) own_.silence();
  }
  /// The set, for a program that polls it itself: from now on signal_descriptor() makes it readable.
  int descriptor() noexcept {
    exposed_ = true;
    return epoll_.get();
  }
  [[nodiscard]] bool is_exposed() const noexcept { return exposed_; }
  /// There is something that no armed bell will ring for: an active pair, or what was found already.
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
  Pair* rung_ = nullptr;
  bool exposed_ = false;    ///< the user has the descriptor
  bool signalled_ = false;  ///< the own bell rings to make it readable
};

}  // namespace wherry::mailbox
