// SPDX-License-Identifier: Apache-2.0
// Keeps a fabric's service thread away from a queue that a spinning waiter drives. Two threads that read one completion
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

/// One per queue. A waiter leases the queue each time it drives it. `end` ends the lease. The lease also expires, so
/// that a waiter that is stopped, or that leaves its loop by an exception, does not disable the service.
///
///  the service calls `defer`   no lease: it serves the queue.
///                              a lease: it leaves the queue alone and sleeps until the lease expires.
///  the waiter calls `end`      nothing was deferred: returns false.
///                              work was deferred: returns true, and the caller wakes the service or serves the queue.
///
/// No work is lost: if `end` and `defer` run at the same time, at least one of them sees the store of the other. There
/// is one lease per bell, because each bell has one waiter. A counter of waiters would stay wrong after one was
/// stopped.
class ServicePark {
 public:
  using Clock = std::chrono::steady_clock;
  /// Longer than a waiter takes between two looks, and shorter than a time slice, for which it may be descheduled.
  static constexpr std::chrono::microseconds kLease{1000};

  explicit ServicePark(Clock::duration lease = kLease) : lease_(lease) {}

  /// Takes or renews the lease. Called by the waiter for `bell` each time it drives the queue.
  void drive(Bell bell, Clock::time_point now) {
    // Relaxed: the queue's own lock orders the waiter's accesses to it, not the lease.
    leases_[index(bell)].store((now + lease_).time_since_epoch().count(), std::memory_order_relaxed);
  }

  /// Ends the lease. Called by the same waiter when it stops driving the queue. True: work was deferred, and the
  /// caller must wake the service. Costs one load if there was no lease.
  [[nodiscard]] bool end(Bell bell) {
    std::atomic<Ticks>& lease = leases_[index(bell)];
    if (lease.load(std::memory_order_relaxed) == kNone) return false;
    lease.store(kNone, std::memory_order_relaxed);
    arch::publish_then_look();  // PARK: pairs with the fence in defer()
    const bool driven = std::ranges::any_of(
        leases_, [](const std::atomic<Ticks>& other) { return other.load(std::memory_order_relaxed) != kNone; });
    return !driven && deferred_.load(std::memory_order_relaxed) && deferred_.exchange(false, std::memory_order_relaxed);
  }

  /// Asks whether to defer work. Called by the service when it has work for the queue. Empty: no waiter drives the
  /// queue, so serve it. A time: a waiter drives it; look again then, or when woken after `end` has returned true.
  [[nodiscard]] std::optional<Clock::time_point> defer(Clock::time_point now) {
    if (driven_until(now)) {
      deferred_.store(true, std::memory_order_relaxed);
      arch::publish_then_look();  // PARK: pairs with the fence in end()
      if (const auto until = driven_until(now)) return until;
    }
    deferred_.store(false, std::memory_order_relaxed);
    return {};
  }

  /// Whether the service has deferred work, and so serves the queue when the lease expires.
  [[nodiscard]] bool is_deferred() const { return deferred_.load(std::memory_order_relaxed); }

 private:
  using Ticks = Clock::rep;
  static constexpr Ticks kNone = 0;

  /// Returns the end of the longest lease; empty if there is none. Removes expired leases, so that `end` of another
  /// waiter does not rely on them.
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
  std::array<std::atomic<Ticks>, 2> leases_{};  ///< [bell]: when the lease expires; kNone: no lease
  std::atomic<bool> deferred_{false};
};

}  // namespace wherry::fabric
