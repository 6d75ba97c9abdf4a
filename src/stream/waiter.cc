// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/config.hpp"

namespace wherry::stream {
namespace {

using std::chrono::nanoseconds;

/// Limits of a measured budget. Below 5 us reading the clock is not worth it.
constexpr nanoseconds kLeast{5'000};
constexpr nanoseconds kMost{100'000};

/// Longer wake-ups are discarded: the waiter was descheduled, or the peer's time stamp is false.
constexpr std::uint64_t kLongestWakeNs = 100'000;

}  // namespace

SpinBudget::SpinBudget() : budget_(std::chrono::microseconds(config::number(config::Key::spin))) {
  measures_ = config::text(config::Key::spin) == config::option(config::Key::spin).default_value;
  // With one CPU the peer cannot run while this side polls.
  if (::sysconf(_SC_NPROCESSORS_ONLN) == 1) budget_ = {};
}

void SpinBudget::learn(const fabric::Connection& connection, fabric::Bell bell) {
  const auto last = connection.last_notification(bell);
  if (last) learn(*last, monotonic_ns(), static_cast<std::uint64_t>(::sched_getcpu()));
}

void SpinBudget::learn(const fabric::Connection::Notification& last, std::uint64_t now_ns, std::uint64_t cpu) {
  if (last.ns == last_notification_ns_) return;  // no new ring: the sleep ended for another reason
  last_notification_ns_ = last.ns;
  shares_cpu_ = last.cpu == cpu;
  const std::uint64_t took = now_ns - last.ns;
  if (shares_cpu_ || !measures_ || took > kLongestWakeNs) return;
  // Estimates the time of a wake-up on an idle CPU: the average follows shorter samples by a quarter, longer ones by a
  // 32nd.
  const nanoseconds sample(took);
  if (wake_.count() == 0) {
    wake_ = sample;
  } else {
    wake_ += sample < wake_ ? (sample - wake_) / 4 : (sample - wake_) / 32;
  }
  if (budget_.count() != 0) budget_ = std::clamp(2 * wake_, kLeast, kMost);
}

fabric::Deadline deadline_of(const Timeout& timeout) {
  if (!timeout) return {};
  const auto now = SteadyClock::now();
  if (*timeout >= SteadyClock::time_point::max() - now) return {};  // beyond the range of the clock: no deadline
  return now + std::max(*timeout, Timeout::value_type::zero());
}

fabric::Deadline connect_deadline(const Timeout& timeout) {
  if (timeout) return deadline_of(timeout);
  return deadline_of(std::chrono::milliseconds(config::number(config::Key::connect_timeout)));
}

}  // namespace wherry::stream
