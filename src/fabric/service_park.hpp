// SPDX-License-Identifier: Apache-2.0
// Keeps a fabric's service thread from a queue that a spinning waiter drives: two threads that read one completion
// queue take twice as long as one. May include: base, arch, layout.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "arch/barrier.hpp"
#include "fabric/bell.hpp"

namespace wherry::fabric {

/// One per queue. A waiter leases the queue each time it drives it. `end` gives the lease back, and it runs out by
/// itself, so that a waiter that is stopped, or leaves its loop by an exception, does not silence the service.
///
///  service asks `defer`   no lease: it serves.   a lease: it leaves the queue alone and sleeps until the lease is over
///  waiter calls `end`     nothing was deferred: returns false.   something was: returns true, and the caller wakes the
///                         service, or serves the queue itself
///
/// No work is left behind: of `end` and `defer` at the same moment, at least one sees what the other stored. One lease
/// for each bell, as each has one waiter. A counter of waiters would not survive one that is stopped.
class ServicePark {
 public:
  using Clock = std::chrono::steady_clock;
  /// Above what a waiter does between two looks, and below a time slice, for which the scheduler may stop it.
  static constexpr std::chrono::microseconds kLease{1000};

  explicit ServicePark(Clock::duration lease = kLease) : lease_(lease) {}

  /// By the waiter for `bell`, which drives the queue now and again soon.
  void drive(Bell bell, Clock::time_point now) {
    // What the waiter read before belongs to the queue's own lock: the lease orders nothing.
    leases_[index(bell)].store((now + lease_).time_since_epoch().count(), std::memory_order_relaxed);
  }

  /// By the same waiter, which does not drive the queue any more. True: work was deferred for it, and the service is
  /// to be woken. Costs one load if there was no lease.
  [[nodiscard]] bool end(Bell bell) {
    std::atomic<Ticks>& lease = leases_[index(bell)];
    if (lease.load(std::memory_order_relaxed) == kNone) return false;
    lease.store(kNone, std::memory_order_relaxed);
    arch::publish_then_look();  // PARK: pairs with the fence in defer()
    const bool driven = std::ranges::any_of(
        leases_, [](const std::atomic<Ticks>& other) { return other.load(std::memory_order_relaxed) != kNone; });
    return !driven && deferred_.load(std::memory_order_relaxed) && deferred_.exchange(false, std::memory_order_relaxed);
  }

  /// By the service, which has work for the queue. A time: a waiter drives it, and the service looks again then, or
  /// when `end` returns true. Empty: no waiter drives it.
  [[nodiscard]] std::optional<Clock::time_point> defer(Clock::time_point now) {
    if (driven_until(now)) {
      deferred_.store(true, std::memory_order_relaxed);
      arch::publish_then_look();  // PARK: pairs with the fence in end()
      if (const auto until = driven_until(now)) return until;
    }
    deferred_.store(false, std::memory_order_relaxed);
    return {};
  }

 private:
  using Ticks = Clock::rep;
  static constexpr Ticks kNone = 0;

  /// The end of the longest lease. Removes those that have run out: `end` of another waiter shall not rely on them.
  std::optional<Clock::time_point> driven_until(Clock::time_point now) {
    Ticks until = kNone;
    for (std::atomic<Ticks>& lease : leases_) {
      Ticks ends = lease.load(std::memory_order_relaxed);
      if (ends != kNone && ends <= now.time_since_epoch().count() &&
          lease.compare_exchange_strong(ends, kNone, std::memory_order_relaxed)) {
        continue;
      }
      until = std::max(until, ends);
    }
    if (until == kNone) return {};
    return Clock::time_point(Clock::duration(until));
  }

  const Clock::duration lease_;
  std::array<std::atomic<Ticks>, 2> leases_{};  ///< [bell]: when it runs out
  std::atomic<bool> deferred_{false};
};

}  // namespace wherry::fabric
