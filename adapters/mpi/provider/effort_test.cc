// SPDX-License-Identifier: Apache-2.0
#include "effort.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace wherry::mpi {
namespace {

constexpr int kMany = 1000;

/// Lets attempts fail until one does not have the highest limit.
void leave_trial(Effort& effort, std::int64_t most) {
  while (effort.limit() == most) effort.failed();
}

TEST(EffortTest, FallsToTheLeastByFailures) {
  Effort effort(2, 16);
  std::int64_t spent = 0;
  for (int i = 0; i < kMany; ++i) {
    spent += effort.limit();
    effort.failed();
  }
  EXPECT_LT(spent, std::int64_t{3} * kMany);
  leave_trial(effort, 16);
  EXPECT_EQ(effort.limit(), 2);
}

TEST(EffortTest, FindsAfterManyFailuresThatMoreIsEnough) {
  Effort effort(2, 16);
  for (int i = 0; i < kMany; ++i) effort.failed();
  const auto attempt = [&] {
    const bool enough = effort.limit() >= 10;
    enough ? effort.succeeded(10) : effort.failed();
    return enough;
  };
  int successes = 0;
  for (int i = 0; i < kMany; ++i) successes += attempt() ? 1 : 0;
  EXPECT_GT(successes, kMany * 9 / 10);
}

TEST(EffortTest, KeepsItsLimitBetweenTheLeastAndTheMost) {
  Effort effort(2, 16);
  for (int i = 0; i < kMany; ++i) {
    i % 3 == 0 ? effort.succeeded(16) : effort.failed();
    EXPECT_GE(effort.limit(), 2);
    EXPECT_LE(effort.limit(), 16);
  }
}

}  // namespace
}  // namespace wherry::mpi
