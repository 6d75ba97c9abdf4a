// SPDX-License-Identifier: Apache-2.0
// What a queue of completions or a counter does when there is nothing in it: moves what its endpoints have, and rests.
//
// MPI libraries ask again and again. A program that asks in vain many times without doing anything else in between is
// waiting: it sleeps then, for at most a millisecond, until something comes. It looks for a while first, since a sleep
// and a wake-up take longer than an answer of a peer that runs; but not where more processes than processors wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "lock.hpp"
#include "messenger.hpp"

namespace wherry::mpi {

class Waiting {
 public:
  explicit Waiting(DomainLock& lock);

  void add(Messenger& messenger);
  void remove(Messenger& messenger);

  /// Locked. True if anything was moved.
  bool progress() noexcept;
  /// Locked, after a progress() in vain by a call that does not block.
  void rest() noexcept;
  /// Locked: sleeps until something may have happened, or the deadline.
  void sleep_until(std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;
  void moved() { vain_ = 0; }
  /// Locked. True: nothing is left to do, and the mailboxes' descriptors will say when there is.
  bool may_sleep() noexcept;
  /// Wakes sleep_until, from any thread.
  void interrupt() noexcept;

 private:
  void sleep(std::chrono::nanoseconds most) noexcept;
  [[nodiscard]] bool is_crowded() const;

  DomainLock& lock_;
  std::vector<Messenger*> messengers_;
  std::uint32_t vain_ = 0;      ///< calls in vain one shortly after the other
  std::uint64_t last_ = 0;      ///< arch::ticks of the last of them
  std::uint64_t activity_ = 0;  ///< of the lock, at the last of them
  std::size_t processors_;
};

}  // namespace wherry::mpi
