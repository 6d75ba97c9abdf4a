// SPDX-License-Identifier: Apache-2.0
// What a queue of completions or a counter does when there is nothing in it: moves what its endpoints have, and rests.
//
// MPI libraries ask again and again. A program that finds nothing many times without doing anything else in between is
// waiting: it sleeps then, for at most a millisecond, until something comes. It looks for a while first, since a sleep
// and a wake-up take longer than an answer of a peer that runs. Where more processes than processors wait, the peer
// does not run while this process looks: it yields after each look, and sleeps once the looks have taken more of the
// processor than the sleep and the wake-up would have.
//
// Not every wait is for a message: the locks of Open MPI's windows are words in shared memory, which nothing announces,
// and a receive may be posted meanwhile that is for later. Where waits end without a message it yields only.
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
  /// @param heeds_yields  a yield of this process lets others run
  Waiting(DomainLock& lock, bool heeds_yields);

  void add(Messenger& messenger);
  void remove(Messenger& messenger);

  /// Locked. True if anything was moved.
  bool progress() noexcept;
  /// The same for a call that does not block: several times where it is likely that the program waits.
  bool look() noexcept;
  /// Locked, after a progress() that moved nothing, by a call that does not block. True: others have had the processor
  /// meanwhile, and another progress() may find something.
  bool rest() noexcept;
  /// Locked: sleeps until something may have happened, or the deadline.
  void sleep_until(std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;
  /// Locked: something has come.
  void moved() noexcept { end_wait(End::message); }
  /// Locked. True: nothing is left to do, and the mailboxes' descriptors will say when there is.
  bool may_sleep() noexcept;
  /// Wakes sleep_until, from any thread.
  void interrupt() noexcept;

 private:
  bool rest_alone() noexcept;
  bool rest_oversubscribed() noexcept;
  bool may_be_answered() noexcept;  ///< by a peer that runs at the same time, as far as the wait has come
  bool only_waits() noexcept;
  void sleep_oversubscribed() noexcept;
  bool sleep(std::chrono::nanoseconds most, bool looks) noexcept;
  bool rest_once() noexcept;
  enum class End : std::uint8_t { message, activity, pause };
  [[nodiscard]] std::int64_t limit_ns() const;  ///< to be used of the processor before the first sleep
  static int doubt_after(End how, int doubt) noexcept;
  void end_wait(End how) noexcept;
  void learn_from_message() noexcept;
  bool look_often() noexcept;
  [[nodiscard]] bool is_oversubscribed() const;
  [[nodiscard]] bool is_crowded() const;

  DomainLock& lock_;
  std::vector<Messenger*> messengers_;
  std::int64_t idle_calls_ = 0;  ///< calls that found nothing, one shortly after the other
  std::int64_t looks_ = 0;       ///< of those, where they look often
  std::uint64_t looked_ = 0;     ///< arch::ticks at the end of the last look that found nothing
  std::uint64_t last_ = 0;       ///< arch::ticks of the last of them
  std::uint64_t activity_ = 0;   ///< of the lock, at the last of them
  int rests_ = 0;                ///< since the first of them
  int doubt_ = 0;                ///< that a message ends a wait

  // Oversubscribed.
  std::int64_t calls_beside_ = 0;  ///< that found nothing, before idle_calls_ counts
  std::int64_t looked_ns_ = 0;     ///< what this thread had used of the processor at the last look at the clock
  std::int64_t waited_ns_ = 0;     ///< used since the first look at the clock
  const bool heeds_yields_;        ///< the scheduler does
  std::int64_t limit_ns_;          ///< to be used before the first sleep, if it does
  Effort unheeded_;                ///< the same if it does not
  Effort beside_;                  ///< calls_beside_
};

}  // namespace wherry::mpi
