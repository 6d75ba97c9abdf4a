// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace wherry {

/// Exponential backoff for attempts to connect: 1 ms after the first attempt, then twice as long each time, at most
/// `longest_pause`; the last attempt is at the deadline. One for each connect; not thread-safe; never blocks.
class RetrySchedule {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  ///< empty: none

  static constexpr Clock::duration kLongestPause = std::chrono::milliseconds(100);

  /// Plans the next attempt after one that failed now. False: the deadline has passed, so there is none.
  bool plan_next(const Deadline& deadline, Clock::duration longest_pause = kLongestPause) noexcept {
    const auto now = Clock::now();
    pause_ = std::min(pause_, longest_pause);
    if (deadline && now >= *deadline) return false;
    next_ = deadline ? std::min(now + pause_, *deadline) : now + pause_;
    pause_ *= 2;
    return true;
  }
  [[nodiscard]] Clock::time_point start() const noexcept { return start_; }
  [[nodiscard]] Clock::time_point next() const noexcept { return next_; }
  [[nodiscard]] bool is_due() const noexcept { return Clock::now() >= next_; }
  /// Returns the time since the first attempt began.
  [[nodiscard]] Clock::duration waited() const noexcept { return Clock::now() - start_; }

 private:
  static constexpr Clock::duration kFirstPause = std::chrono::milliseconds(1);

  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  Clock::duration pause_ = kFirstPause;
};

}  // namespace wherry
