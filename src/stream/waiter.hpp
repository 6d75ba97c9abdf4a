// SPDX-License-Identifier: Apache-2.0
// The one place that decides how to wait: look for a short while, then sleep on a bell. May include: base, arch,
// layout, fabric.
//
// Looking pays only if the peer runs on another core at the same moment and answers sooner than a sleep and a wake-up
// take (20 to 30 us across cores of a virtual machine, a few on others). A budget shorter than that is the worst of
// all: each side falls asleep while the other is waking up, and both lock into sleeping. A longer one is wasted. So the
// budget is twice what wake-ups are measured to take, by the time and CPU that the ringing side notes; after a ring on
// the waiter's own CPU there is no budget, until one on another. A waiter looks for the whole budget or not
// at all: after a look in vain it goes straight to sleep for 1, 3, 7 ... 63 times before it tries again. Sixty
// processes on two cores soon sleep nearly always; a pair on two cores soon looks always, since one successful look
// makes it look again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <wherry/stream.hpp>

#include "arch/pause.hpp"
#include "fabric/fabric.hpp"

namespace wherry::stream {

using SteadyClock = std::chrono::steady_clock;

/// When a timeout that starts now ends.
fabric::Deadline deadline_of(const Timeout& timeout);
/// The same of a connect, for which an empty timeout is the configured one. Throws Error(EINVAL) if that is no number.
fabric::Deadline connect_deadline(const Timeout& timeout);

inline bool has_passed(const fabric::Deadline& deadline) { return deadline && SteadyClock::now() >= *deadline; }

/// Whether and how long to look before sleeping. One per direction of a stream.
class SpinBudget {
 public:
  /// The configuration's budget; measured if that is the default, none on a machine with one CPU. Throws Error for a
  /// bad setting.
  SpinBudget();
  explicit SpinBudget(std::chrono::microseconds budget) : budget_(budget) {}

  /// After a sleep on `bell`.
  void learn(const fabric::Connection& connection, fabric::Bell bell);
  /// The same, given the clock and the CPU of the waiter.
  void learn(const fabric::Connection::Notification& last, std::uint64_t now_ns, std::uint64_t cpu);
  [[nodiscard]] std::chrono::nanoseconds budget() const { return shares_cpu_ ? std::chrono::nanoseconds{} : budget_; }

  /// Looks until `ready()`, the budget is spent, or the deadline has passed. True if it became ready.
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

  /// The same on a put fabric, by the waiter for `bell`: by way of the connection's progress, whose service thread
  /// stays parked meanwhile. False at once where it has none.
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

  /// Whether the last look succeeded almost at once.
  [[nodiscard]] bool came_soon() const { return soon_; }

 private:
  static constexpr int kLooksPerClock = 32;  ///< about half a microsecond between two looks at the clock
  static constexpr int kSoon = 8;            ///< looks
  static constexpr std::uint32_t kMaxPenalty = 63;

  std::chrono::nanoseconds budget_;
  std::chrono::nanoseconds wake_{};  ///< what a wake-up takes; 0: not measured
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
    // A peer that rings for nothing, again and again, must not keep the sleeper beyond its deadline.
    if (wake == fabric::Wake::rung && deadline && SteadyClock::now() >= *deadline) wake = fabric::Wake::timeout;
  }
  connection.disarm(bell);
  return wake;
}

}  // namespace wherry::stream
