// SPDX-License-Identifier: Apache-2.0
// Decides how a blocked call waits: it polls for the spin budget, then sleeps on a bell.
//
// May include: base, arch, layout, fabric.
//
// Polling pays only if the peer runs on another core at the same moment, and answers sooner than a sleep and a wake-up
// take. That is 20 to 30 us across cores of a virtual machine, a few us on other machines. A budget shorter than that
// is worst: each side falls asleep while the other wakes up, and both stay in that pattern. A longer budget is wasted.
// So the budget is twice the measured time of a wake-up, from the time and CPU that the ringing side notes. After a
// ring on the waiter's own CPU the budget is zero, until a ring on another CPU. A waiter polls for the whole budget or
// not at all. After a poll that found nothing it goes straight to sleep 1, 3, 7 ... 63 times before it polls again.
// Sixty processes on two cores soon sleep nearly always; a pair on two cores soon polls always, because one successful
// poll resets the penalty.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <wherry/stream.hpp>

#include "arch/pause.hpp"
#include "fabric/fabric.hpp"

namespace wherry::stream {

using SteadyClock = std::chrono::steady_clock;

/// Returns the deadline of a timeout that starts now. Empty: no deadline.
fabric::Deadline deadline_of(const Timeout& timeout);
/// The same for a connect, where an empty timeout means the configured one. Throws Error(EINVAL) if that is not a
/// number.
fabric::Deadline connect_deadline(const Timeout& timeout);

inline bool has_passed(const fabric::Deadline& deadline) { return deadline && SteadyClock::now() >= *deadline; }

/// Decides whether and how long to poll before sleeping. One for each direction of a stream.
class SpinBudget {
 public:
  /// Uses the configured budget, which is adapted to measured wake-ups if it is the default. Zero on a machine with one
  /// CPU. Throws Error for an invalid setting.
  SpinBudget();
  explicit SpinBudget(std::chrono::microseconds budget) : budget_(budget) {}

  /// Call it after a sleep on `bell`: measures the wake-up.
  void learn(const fabric::Connection& connection, fabric::Bell bell);
  /// The same, given the clock and the CPU of the waiter.
  void learn(const fabric::Connection::Notification& last, std::uint64_t now_ns, std::uint64_t cpu);
  [[nodiscard]] std::chrono::nanoseconds budget() const { return shares_cpu_ ? std::chrono::nanoseconds{} : budget_; }

  /// Polls until `ready()`, the budget is spent, or the deadline has passed. True if it became ready.
  template <class Ready>
  bool look(Ready&& ready, fabric::Deadline deadline = {}) {
    soon_ = false;
    if (budget().count() == 0) return false;
    if (sleeps_to_go_ > 0) {
      --sleeps_to_go_;
      return false;
    }
    SteadyClock::time_point end = SteadyClock::now() + budget_;
    if (deadline) end = std::min(end, *deadline);
    for (bool first = true;; first = false) {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (ready()) {
          penalty_ = 0;
          soon_ = first && i < kSoon;
          return true;
        }
        arch::pause();
      }
      if (SteadyClock::now() >= end) break;
    }
    penalty_ = penalty_ * 2 + 1 > kMaxPenalty ? kMaxPenalty : penalty_ * 2 + 1;
    sleeps_to_go_ = penalty_;
    return false;
  }

  /// The same on a put fabric, for the waiter for `bell`: makes the connection's progress meanwhile, with its service
  /// thread parked. False at once if polling gains nothing there.
  template <class Ready>
  bool look_through(fabric::Connection& connection, fabric::Bell bell, Ready&& ready, fabric::Deadline deadline = {}) {
    soon_ = false;
    if (!connection.progresses()) return false;
    const auto through = [&] {
      connection.progress(bell);
      return ready();
    };
    const bool is_ready = look(through, deadline);
    connection.end_progress(bell);
    return is_ready;
  }

  /// Whether the last look() succeeded almost at once.
  [[nodiscard]] bool came_soon() const { return soon_; }

 private:
  static constexpr int kLooksPerClock = 32;  ///< the clock is read about every half microsecond
  static constexpr int kSoon = 8;            ///< looks
  static constexpr std::uint32_t kMaxPenalty = 63;

  std::chrono::nanoseconds budget_;
  std::chrono::nanoseconds wake_{};  ///< average time of a wake-up; 0: not measured
  bool measures_ = false;
  bool shares_cpu_ = false;  ///< the peer last rang on this side's CPU
  std::uint64_t last_notification_ns_ = 0;
  std::uint32_t penalty_ = 0;
  std::uint32_t sleeps_to_go_ = 0;
  bool soon_ = false;
};

/// Sleeps once on `bell` unless `ready()` after the announcement; `before_sleep()` runs right before the descriptor is
/// waited on. The peer's half of the handshake is Bells::announce (or an arriving signal).
template <class Ready, class BeforeSleep>
fabric::Wake sleep_unless(fabric::Connection& connection, fabric::Bell bell, fabric::Deadline deadline, Ready&& ready,
                          BeforeSleep&& before_sleep) {
  connection.arm(bell);
  auto wake = fabric::Wake::rung;
  if (!ready()) {
    before_sleep();
    wake = connection.wait(bell, deadline);
    // A peer that keeps ringing for nothing must not keep the sleeper beyond its deadline.
    if (wake == fabric::Wake::rung && deadline && SteadyClock::now() >= *deadline) wake = fabric::Wake::timeout;
  }
  connection.disarm(bell);
  return wake;
}

}  // namespace wherry::stream
