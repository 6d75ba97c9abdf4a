// SPDX-License-Identifier: Apache-2.0
// Finds what has happened: looks at the words of the pairs that are active, and asks the kernel for the others. May
// include: base, layout, fabric, stream.
//
// No wake-up is lost: a bell that was taken makes its pair active, and a mailbox sleeps only after every active pair
// was armed and then looked at once more.
#pragma once

#include "mailbox/connector.hpp"
#include "mailbox/doorbells.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/section_allocator.hpp"
#include "mailbox/write_interest.hpp"
#include "stream/waiter.hpp"

namespace wherry::mailbox {

class ProgressEngine {
 public:
  ProgressEngine(Pairs& pairs, WriteInterest& write_interest, Doorbells& bells, SectionAllocator& sections,
                 Connector& connector);

  /// Looks at an open pair's words, and answers them. True: there is something for the user.
  bool serve(Pair& pair) noexcept;
  /// The same for all active pairs, and for those that wait for room.
  bool serve_active() noexcept;

  /// After `looks` looks at pairs. Asks the kernel every so many, and not sooner than an interval after the last time.
  void poll_kernel_after(unsigned looks) noexcept {
    looks_ += looks;
    if (looks_ >= kLooksPerClock) poll_kernel_if_due();
  }
  /// Takes the events of all bells, the port and attempts, without sleeping.
  void poll_kernel() noexcept;
  /// Sleeps until an event or the deadline, and takes the events.
  void sleep(fabric::Deadline deadline) noexcept;

  /// The pair's words are looked at from now on, and its bells armed before a sleep.
  void activate(Pair& pair) noexcept {
    if (!pair.active) bells_.activate(pair);
  }
  /// Makes every active pair idle, and arms those that wait for room. False: one of them has something.
  bool arm_all() noexcept;
  /// Arms the bells of the active pairs, which remain active.
  void arm_active() noexcept;
  /// A pair that found nothing for long becomes idle, unless so few are active that it may stay.
  void arm_if_quiet(Pair& pair) noexcept {
    if (pair.idle_looks > kLooksBeforeIdle) [[unlikely]]
      arm_unless_few(pair);
  }
  /// Makes those of the `count` pairs armed last active again that had something lately: so their peers need not ring,
  /// nor need the kernel be asked.
  void reactivate(std::size_t count) noexcept;

 private:
  /// After so many looks that found nothing a pair is armed.
  static constexpr unsigned kLooksBeforeIdle = 128;
  /// The clock is looked at after so many looks.
  static constexpr unsigned kLooksPerClock = 32;

  void poll_kernel_if_due() noexcept;
  void on_event(Source& source) noexcept;
  void on_bell(Pair& pair, fabric::Bell bell) noexcept;
  void suspect_all() noexcept;
  bool arm(Pair& pair) noexcept;
  void arm_unless_few(Pair& pair) noexcept;

  Pairs& pairs_;
  WriteInterest& write_interest_;
  Doorbells& bells_;
  SectionAllocator& sections_;
  Connector& connector_;
  unsigned looks_ = 0;  ///< since the clock was looked at
  stream::SteadyClock::time_point next_poll_{};
};

}  // namespace wherry::mailbox
