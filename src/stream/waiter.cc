// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/config.hpp"

namespace wherry::stream {
namespace {

using std::chrono::nanoseconds;

/// A measured budget stays within these: less is not worth a look at the clock.
constexpr nanoseconds kLeast{5'000};
constexpr nanoseconds kMost{100'000};

/// Who was woken later waited for a CPU, which says nothing about wake-ups; or the time was made up.
constexpr std::uint64_t kLongestWakeNs = 100'000;

}  // namespace

SpinBudget::SpinBudget() : budget_(std::chrono::microseconds(config::number(config::Key::spin))) {
  measures_ = config::text(config::Key::spin) == config::option(config::Key::spin).default_value;
  // With one CPU the peer cannot run while this side looks.
  if (::sysconf(_SC_NPROCESSORS_ONLN) == 1) budget_ = {};
}

void SpinBudget::learn(const fabric::Connection& connection, fabric::Bell bell) {
  const auto ring = connection.last_ring(bell);
  if (ring) learn(*ring, monotonic_ns(), static_cast<std::uint64_t>(::sched_getcpu()));
}

void SpinBudget::learn(const fabric::Connection::Ring& ring, std::uint64_t now_ns, std::uint64_t cpu) {
  if (ring.ns == last_ring_ns_) return;  // nobody rang: the sleep ended otherwise
  last_ring_ns_ = ring.ns;
  shares_cpu_ = ring.cpu == cpu;
  const std::uint64_t took = now_ns - ring.ns;
  if (shares_cpu_ || !measures_ || took > kLongestWakeNs) return;
  // What a wake-up takes when no CPU has to be waited for: fast down, slowly up.
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
  if (*timeout >= SteadyClock::time_point::max() - now) return {};  // for ever, as good as
  return now + std::max(*timeout, Timeout::value_type::zero());
}

}  // namespace wherry::stream
