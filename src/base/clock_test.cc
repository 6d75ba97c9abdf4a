// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

namespace wherry {
namespace {

std::uint64_t system_monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Other processes read a process's statistics: both must use CLOCK_MONOTONIC.
TEST(Clock, IsTheSystemsMonotonicClock) {
  const std::uint64_t before = system_monotonic_ns();
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t after = system_monotonic_ns();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

}  // namespace
}  // namespace wherry
