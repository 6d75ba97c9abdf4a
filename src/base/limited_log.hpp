// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace wherry::log {

/// Rate limit for log lines that others can cause, such as a server's lines about its clients. In each period a number
/// of lines is written, and then one line with the number of suppressed lines. Thread-safe; never throws.
class LimitedLog {
 public:
  struct Limit {
    std::uint64_t lines = 10;
    std::chrono::nanoseconds period = std::chrono::seconds(10);
  };
  using Clock = std::uint64_t (*)();  ///< nanoseconds, never set back

  /// @param subject  begins the line with the number of suppressed lines
  explicit LimitedLog(std::string subject) : LimitedLog(std::move(subject), Limit()) {}
  LimitedLog(std::string subject, Limit limit, Clock now = monotonic_ns);
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;
  /// Reports lines still suppressed.
  ~LimitedLog();

  /// As log::write, or suppresses the line.
  void write(Level level, std::string_view text) noexcept;
  /// Reports suppressed lines if their period is over; `write` does that, too.
  void report_if_due() noexcept;
  /// Returns the milliseconds until `report_if_due` has something to report; -1, as for poll: no line is suppressed.
  [[nodiscard]] int report_due_in_ms() const noexcept;

 private:
  [[nodiscard]] std::chrono::nanoseconds left_of_period() const;
  void report_suppressed() noexcept;

  const std::string subject_;
  const Limit limit_;
  const Clock now_;
  mutable std::mutex mutex_;
  std::uint64_t period_began_ = 0;
  std::uint64_t written_ = 0;  // in this period
  std::uint64_t suppressed_ = 0;
  Level level_ = Level::warning;  // most severe level of the suppressed lines
};

}  // namespace wherry::log
