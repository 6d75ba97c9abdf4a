// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace wherry {

/// When to try again to reach something that is not there yet: 1 ms after the first attempt, then after twice as long
/// each time, at most `longest_pause` apart, the last time at the deadline. One per connect; not thread-safe; never
/// blocks.
class RetrySchedule {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  ///< empty: none

  static constexpr Clock::duration kLongestPause = std::chrono::milliseconds(100);

  /// Plans the attempt after one that failed now. False: the deadline has passed, there is no further attempt.
  bool plan_next(const Deadline& deadline, Clock::duration longest_pause = kLongestPause) noexcept {
    const auto now = Clock::now();
    pause_ = std::min(pause_, longest_pause);
    if (deadline && now >= *deadline) return false;
    next_ = deadline ? std::min(now + pause_, *deadline) : now + pause_;
    pause_ *= 2;
    return true;
  }
  [[nodiscard]] Clock::time_point next() const noexcept { return next_; }
  [[nodiscard]] bool is_due() const noexcept { return Clock::now() >= next_; }
  /// The time since the first attempt began.
  [[nodiscard]] Clock::duration waited() const noexcept { return Clock::now() - start_; }

 private:
  static constexpr Clock::duration kFirstPause = std::chrono::milliseconds(1);

  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  Clock::duration pause_ = kFirstPause;
};

}  // namespace wherry
