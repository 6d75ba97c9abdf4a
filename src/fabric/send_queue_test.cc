// SPDX-License-Identifier: Apache-2.0
#include "fabric/send_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::fabric {
namespace {

constexpr std::size_t kKiB = 1024;

class SendQueueTest : public ::testing::Test {
 protected:
  /// Queues the next `bytes` of a ring, with a tail behind them.
  void put(std::size_t bytes) {
    queue_.push({.to = 4096 + at_,
                 .source = {memory_.data() + at_, bytes},
                 .word = SendQueue::Word{.at = 8, .value = at_ + bytes, .bell = Bell::data}});
    at_ += bytes;
  }
  void signal(std::uint64_t at, std::uint64_t value) {
    queue_.push({.word = SendQueue::Word{.at = at, .value = value, .bell = Bell::space}});
  }

  SendQueue queue_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(1024 * kKiB);
  std::size_t at_ = 0;
};

TEST_F(SendQueueTest, NothingWaitsWhileFewerThanTwoAreInFlight) {
  for (std::size_t in_flight = 0; in_flight < SendQueue::kInFlight; ++in_flight) {
    put(64);
    ASSERT_NE(queue_.next(in_flight), nullptr);
    EXPECT_EQ(queue_.take().source.size(), 64U);
  }
}

TEST_F(SendQueueTest, PutsThatFollowEachOtherGatherUntilOneInFlightCompletes) {
  for (int i = 0; i < 10; ++i) put(64);
  EXPECT_EQ(queue_.next(2), nullptr);
  ASSERT_NE(queue_.next(1), nullptr);
  const SendQueue::Item gathered = queue_.take();
  EXPECT_EQ(gathered.source.data(), memory_.data());
  EXPECT_EQ(gathered.source.size(), 640U);
  EXPECT_EQ(gathered.to, 4096U);
  EXPECT_EQ(gathered.word->value, 640U);
  EXPECT_EQ(queue_.bytes(), 0U);
  EXPECT_EQ(gathered.pushed, 10U);
  EXPECT_EQ(queue_.pushed(), 10U);
}

TEST_F(SendQueueTest, AFullGatheringIsSentAndTheNextOneBegins) {
  for (std::size_t i = 0; i < 17; ++i) put(4 * kKiB);
  EXPECT_EQ(queue_.size(), 2U);
  ASSERT_NE(queue_.next(2), nullptr);
  EXPECT_EQ(queue_.take().source.size(), SendQueue::kGathered);
  EXPECT_EQ(queue_.next(2), nullptr);
  EXPECT_EQ(queue_.bytes(), 4 * kKiB);
}

TEST_F(SendQueueTest, LargePutsAreSentAsTheyAre) {
  put(64 * kKiB);
  ASSERT_NE(queue_.next(5), nullptr);
  put(100);
  EXPECT_EQ(queue_.size(), 2U);
  EXPECT_EQ(queue_.take().source.size(), 64 * kKiB);
}

TEST_F(SendQueueTest, WhatDoesNotFollowIsAnItemOfItsOwn) {
  put(64);
  at_ += 8;
  put(64);
  EXPECT_EQ(queue_.size(), 2U);
  signal(16, 1);
  EXPECT_EQ(queue_.size(), 3U);
  put(64);
  EXPECT_EQ(queue_.size(), 4U);
  ASSERT_NE(queue_.next(9), nullptr) << "what has others behind it gathers no more";
}

TEST_F(SendQueueTest, ABareWordWaitsForNothingAndReplacesTheSameWord) {
  signal(16, 1);
  signal(16, 2);
  signal(24, 3);
  ASSERT_NE(queue_.next(9), nullptr);
  EXPECT_EQ(queue_.take().word->value, 2U);
  ASSERT_NE(queue_.next(9), nullptr);
  EXPECT_EQ(queue_.take().word->value, 3U);
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace wherry::fabric
