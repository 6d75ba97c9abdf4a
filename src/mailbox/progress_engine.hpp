// SPDX-License-Identifier: Apache-2.0
// Finds events: polls the words of the active pairs, and asks the kernel about the others.
//
// May include: base, layout, fabric, stream.
//
// No wake-up is lost: taking a bell makes its pair active, and a mailbox sleeps only after it has armed every active
// pair and looked once more.
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

  /// Looks at an open pair's words, and answers them. True: there is an event for the user.
  bool serve(Pair& pair) noexcept;
  /// Serves all active pairs, and looks at those that wait for room.
  bool serve_active() noexcept;

  /// Counts `looks` looks at pairs. Every kLooksPerClock looks, polls the kernel if the poll interval has passed.
  void poll_kernel_after(unsigned looks) noexcept {
    looks_ += looks;
    if (looks_ >= kLooksPerClock) poll_kernel_if_due();
  }
  /// Lets the next poll_kernel_after() read the clock: the caller has given the processor away meanwhile.
  void poll_kernel_next() noexcept { looks_ = kLooksPerClock; }
  /// Takes the events of all bells, the port and the attempts, without sleeping.
  void poll_kernel() noexcept;
  /// Sleeps until an event or the deadline, and takes the events.
  void sleep(fabric::Deadline deadline) noexcept;

  /// Makes the pair active: its words are polled from now on, and its bells armed before a sleep.
  void activate(Pair& pair) noexcept {
    if (!pair.active) bells_.activate(pair);
  }
  /// Arms all active pairs and makes them idle, and arms those that wait for room. False: one of them has an event.
  bool arm_all() noexcept;
  /// Arms the bells of the active pairs, which remain active.
  void arm_active() noexcept;
  /// Makes a pair idle after many looks that found nothing, unless few pairs are active.
  void arm_if_quiet(Pair& pair) noexcept {
    if (pair.idle_looks > kLooksBeforeIdle) [[unlikely]]
      arm_unless_few(pair);
  }
  /// Re-activates up to `count` of the most recently armed pairs, if they had recent traffic. The next poll then finds
  /// them without a doorbell or a system call.
  void reactivate(std::size_t count) noexcept;

 private:
  /// A pair is armed after this many looks that found nothing.
  static constexpr unsigned kLooksBeforeIdle = 128;
  /// The clock is read once per this many looks.
  static constexpr unsigned kLooksPerClock = 32;

  void poll_kernel_if_due() noexcept;
  void on_event(Source& source) noexcept;
  void on_bell(Pair& pair, fabric::Bell bell) noexcept;
  void poll_without_epoll() noexcept;
  bool arm(Pair& pair) noexcept;
  void arm_unless_few(Pair& pair) noexcept;

  Pairs& pairs_;
  WriteInterest& write_interest_;
  Doorbells& bells_;
  SectionAllocator& sections_;
  Connector& connector_;
  unsigned looks_ = 0;  ///< since the clock was last read
  stream::SteadyClock::time_point next_poll_{};
};

}  // namespace wherry::mailbox
