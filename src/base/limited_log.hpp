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

/// Log lines that others can cause as often as they like, such as a server's about its clients: a number of them in
/// each period is written, and then one line that says how many were left out. All calls from any thread; none throws.
class LimitedLog {
 public:
  struct Limit {
    std::uint64_t lines = 10;
    std::chrono::nanoseconds period = std::chrono::seconds(10);
  };
  using Clock = std::uint64_t (*)();  ///< nanoseconds, never set back

  /// @param subject  begins the line that says how many were left out
  explicit LimitedLog(std::string subject) : LimitedLog(std::move(subject), Limit()) {}
  LimitedLog(std::string subject, Limit limit, Clock now = monotonic_ns);
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;
  /// Tells what was left out.
  ~LimitedLog();

  /// As log::write, or leaves the line out.
  void write(Level level, std::string_view text) noexcept;
  /// Tells what was left out if its period is over; `write` does so, too.
  void tell_left_out() noexcept;
  /// Milliseconds until `tell_left_out` has something to tell; -1, as poll takes it: nothing was left out.
  [[nodiscard]] int told_in_ms() const noexcept;

 private:
  [[nodiscard]] std::chrono::nanoseconds left_of_period() const;
  void tell() noexcept;

  const std::string subject_;
  const Limit limit_;
  const Clock now_;
  mutable std::mutex mutex_;
  std::uint64_t period_began_ = 0;
  std::uint64_t written_ = 0;  // in this period
  std::uint64_t left_out_ = 0;
  Level level_ = Level::warning;  // of the gravest line that was left out
};

}  // namespace wherry::log
