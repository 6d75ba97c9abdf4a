// SPDX-License-Identifier: Apache-2.0
// How an empty completion queue or counter makes progress, and when it rests.
//
// MPI libraries poll. A program that polls many times in a row, finds nothing and does nothing else in between, is
// waiting. It then sleeps, for at most a millisecond at a time, until something comes. First it polls for a while,
// because a sleep and a wake-up take longer than the answer of a peer that runs. If more processes than processors
// wait, the peer does not run while this process polls. Then it yields after each poll, and sleeps once the polls have
// used more processor time than the sleep and the wake-up would have.
//
// Not every wait is for a message. The locks of Open MPI's windows are words in shared memory, which nothing announces,
// and a receive posted meanwhile may be for later. If waits end without a message, the process only yields.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "adapters/mpi/messenger/messenger.hpp"
#include "effort.hpp"
#include "lock.hpp"

namespace wherry::mpi {

class Waiting {
 public:
  explicit Waiting(DomainLock& lock);
  /// @param yields_are_effective  a yield of this process lets others run
  Waiting(DomainLock& lock, bool yields_are_effective);

  void add(Messenger& messenger);
  void remove(Messenger& messenger);

  /// The caller holds the lock. Returns true if anything moved.
  bool progress() noexcept;
  /// The same for a call that does not block. Polls several times if the program is probably waiting.
  bool look() noexcept;
  /// The caller holds the lock, in a call that does not block, after a progress() that moved nothing. Returns true if
  /// others have had the processor meanwhile: another progress() may then find something.
  bool rest() noexcept;
  /// The caller holds the lock. Sleeps until something may have happened, at most to the deadline.
  void sleep_until(std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;
  /// The caller holds the lock. Notes that something has arrived.
  void moved() noexcept { end_wait(End::message); }
  /// The caller holds the lock. Returns true if nothing is left to do; the mailboxes' descriptors become readable when
  /// there is.
  bool may_sleep() noexcept;
  /// Wakes sleep_until(). From any thread.
  void interrupt() noexcept;

 private:
  bool rest_alone() noexcept;
  bool rest_oversubscribed() noexcept;
  void yield(bool awaits) noexcept;
  bool may_be_answered() noexcept;  ///< a peer on another processor may still answer
  bool only_waits() noexcept;
  void sleep_oversubscribed(bool awaits) noexcept;
  bool sleep(std::chrono::nanoseconds most, bool looks) noexcept;
  bool rest_once(bool awaits) noexcept;
  [[nodiscard]] bool awaits_message() noexcept;
  enum class End : std::uint8_t { message, activity, pause };
  [[nodiscard]] std::int64_t limit_ns() const;  ///< processor time to use before the first sleep
  static int doubt_after(End how, int doubt) noexcept;
  void end_wait(End how) noexcept;
  void learn_from_message() noexcept;
  bool look_often() noexcept;
  [[nodiscard]] bool is_oversubscribed() const;
  [[nodiscard]] bool is_crowded() const;

  DomainLock& lock_;
  std::vector<Messenger*> messengers_;
  std::int64_t idle_calls_ = 0;  ///< consecutive calls that found nothing
  std::int64_t looks_ = 0;       ///< polls of these calls in look_often()
  std::uint64_t looked_ = 0;     ///< arch::ticks at the end of the last look() that found nothing
  std::uint64_t last_ = 0;       ///< arch::ticks at the last of these calls that read the clock
  std::uint64_t activity_ = 0;   ///< DomainLock::activity() at the last of these calls
  int rests_ = 0;                ///< rests since the first of these calls
  int doubt_ = 0;                ///< grows if waits end without a message: see doubt_after()

  // For oversubscribed jobs:
  std::int64_t calls_before_yield_ = 0;  ///< calls that found nothing before the first yield; later ones: idle_calls_
  std::int64_t looked_ns_ = 0;           ///< processor time of this thread at the last look at the clock
  std::int64_t waited_ns_ = 0;           ///< processor time used since the first look at the clock
  const bool yields_are_effective_;      ///< whether a yield lets other processes run
  std::int64_t limit_ns_;                ///< processor time to use before the first sleep, if it does
  Effort polling_effort_;                ///< the same if it does not
  Effort before_yield_effort_;           ///< limit of calls_before_yield_
};

}  // namespace wherry::mpi
