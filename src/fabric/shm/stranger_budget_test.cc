// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/stranger_budget.hpp"

#include <gtest/gtest.h>

namespace wherry::fabric::shm {
namespace {

class StrangerBudgetTest : public ::testing::Test {
 protected:
  void spend(int strangers) {
    for (int i = 0; i < strangers; ++i) budget_.spend(now_);
  }
  void pass(StrangerBudget::Clock::duration time) { now_ += time; }

  StrangerBudget::Clock::time_point now_;
  StrangerBudget budget_{now_};
};

TEST_F(StrangerBudgetTest, AFewStrangersLeaveTheQueueLong) {
  spend(StrangerBudget::kAtOnce - 1);
  EXPECT_EQ(budget_.queue_length(now_), SOMAXCONN);
}

TEST_F(StrangerBudgetTest, AStormMakesTheQueueShort) {
  spend(StrangerBudget::kAtOnce);
  EXPECT_EQ(budget_.queue_length(now_), StrangerBudget::kShortQueue);
}

TEST_F(StrangerBudgetTest, TheQueueIsLongAgainOnceAllOfTheBudgetIsBack) {
  spend(1'000'000);
  pass(StrangerBudget::kAtOnce * StrangerBudget::kPerStranger - std::chrono::milliseconds(1));
  EXPECT_EQ(budget_.queue_length(now_), StrangerBudget::kShortQueue);
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(budget_.queue_length(now_), SOMAXCONN);
}

TEST_F(StrangerBudgetTest, StrangersWithinTheRateNeverSpendIt) {
  for (int i = 0; i < 10'000; ++i) {
    spend(1);
    pass(std::chrono::milliseconds(1));
    ASSERT_EQ(budget_.queue_length(now_), SOMAXCONN) << i;
  }
}

TEST_F(StrangerBudgetTest, ALongIdleTimeIsNoCredit) {
  pass(std::chrono::hours(1000));
  spend(StrangerBudget::kAtOnce);
  EXPECT_EQ(budget_.queue_length(now_), StrangerBudget::kShortQueue);
}

}  // namespace
}  // namespace wherry::fabric::shm
