// SPDX-License-Identifier: Apache-2.0
// The one place that decides how to wait: look for a short while, then sleep on a bell. May include: base, arch,
// layout, fabric.
//
// Looking pays only if the peer runs on another core at the same moment and answers sooner than a sleep and a wake-up
// take (20 to 30 us across cores of a virtual machine). A budget shorter than that is the worst of all: each side falls
// asleep while the other is waking up, and both lock into sleeping. So a waiter looks for the whole budget or not at
// all: after a look in vain it goes straight to sleep for 1, 3, 7 ... 63 times before it tries again. Sixty processes
// on two cores soon sleep nearly always; a pair on two cores soon looks always, since one successful look makes it look
// again.
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

inline bool has_passed(const fabric::Deadline& deadline) { return deadline && SteadyClock::now() >= *deadline; }

/// Whether and how long to look before sleeping. One per direction of a stream.
class SpinBudget {
 public:
  /// Budget from the configuration; none on a single core. Throws Error for a bad setting.
  SpinBudget();
  explicit SpinBudget(std::chrono::microseconds budget) : budget_(budget) {}

  /// Looks until `ready()`, the budget is spent, or the deadline has passed. True if it became ready.
  template <class Ready>
  bool look(Ready&& ready, fabric::Deadline deadline = {}) {
    soon_ = false;
    if (budget_.count() == 0) return false;
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

  /// Whether the last look succeeded almost at once.
  [[nodiscard]] bool came_soon() const { return soon_; }

 private:
  static constexpr int kLooksPerClock = 32;  ///< about half a microsecond between two looks at the clock
  static constexpr int kSoon = 8;            ///< looks
  static constexpr std::uint32_t kMaxPenalty = 63;

  std::chrono::microseconds budget_;
  std::uint32_t penalty_ = 0;
  std::uint32_t sleeps_to_go_ = 0;
  bool soon_ = false;
};

/// Sleeps once on `bell` unless `ready()` after the announcement; `before_sleep()` runs right before the descriptor is
/// waited on. The peer's half of the handshake is Connection::announce (or an arriving signal).
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
