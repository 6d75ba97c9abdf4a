// SPDX-License-Identifier: Apache-2.0
#include "base/limited_log.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace wherry::log {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

LimitedLog::LimitedLog(std::string subject, Limit limit, Clock now)
    : subject_(std::move(subject)), limit_(limit), now_(now), period_began_(now()) {}

LimitedLog::~LimitedLog() { report_suppressed(); }

void LimitedLog::write(Level level, std::string_view text) noexcept {
  if (!enabled(level)) return;
  const std::lock_guard lock(mutex_);
  if (left_of_period() <= nanoseconds::zero()) {
    report_suppressed();
    period_began_ = now_();
    written_ = 0;
  }
  if (written_ < limit_.lines) {
    ++written_;
    return log::write(level, text);
  }
  level_ = suppressed_ == 0 ? level : std::min(level_, level);
  ++suppressed_;
}

void LimitedLog::report_if_due() noexcept {
  const std::lock_guard lock(mutex_);
  if (left_of_period() <= nanoseconds::zero()) report_suppressed();
}

int LimitedLog::report_due_in_ms() const noexcept {
  const std::lock_guard lock(mutex_);
  if (suppressed_ == 0) return -1;
  const auto left = std::chrono::ceil<milliseconds>(std::max(left_of_period(), nanoseconds::zero()));
  return static_cast<int>(std::min<milliseconds::rep>(left.count(), std::numeric_limits<int>::max()));
}

nanoseconds LimitedLog::left_of_period() const {
  return limit_.period - nanoseconds(static_cast<nanoseconds::rep>(now_() - period_began_));
}

void LimitedLog::report_suppressed() noexcept {
  if (suppressed_ == 0) return;
  try {
    log::write(level_, subject_ + ": " + std::to_string(suppressed_) +
                           (suppressed_ == 1 ? " more line was left out" : " more lines were left out"));
    suppressed_ = 0;
  } catch (const std::exception&) {
    // Out of memory: reported with the next suppressed lines.
  }
}

}  // namespace wherry::log
