// SPDX-License-Identifier: Apache-2.0
// The queue between a publisher and a subscriber, over words in this test's own memory. Some words are ones that a peer
// must not write.
#include "message/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "arch/pause.hpp"

namespace wherry::message {
namespace {

constexpr std::uint32_t kPlaces = 4;

using Room = OutQueue::Room;
using Look = InQueue::Look;

struct Words {
  std::array<layout::MessageEntry, kPlaces> entries{};
  std::array<layout::MessageReturn, kPlaces> returns{};
  layout::Word head{0};
};

class QueueTest : public ::testing::TestWithParam<bool> {
 protected:
  QueueTest() {
    layout::Word* const head = GetParam() ? &words_.head : nullptr;
    out_.emplace(OutQueue::Words{words_.entries.data(), words_.returns.data(), head}, kPlaces);
    in_.emplace(InQueue::Words{words_.entries.data(), words_.returns.data(), head}, kPlaces);
  }

  void push(std::uint32_t block) { out_->push(block, std::size_t{block} * 128, block + 1); }
  InQueue::Entry take() {
    InQueue::Entry entry;
    EXPECT_EQ(in_->take(entry), Look::message);
    return entry;
  }
  /// The blocks that come back. Empty, and `good` false, if a return is invalid.
  std::vector<std::uint32_t> reclaim(bool good = true) {
    std::vector<std::uint32_t> blocks;
    EXPECT_EQ(out_->reclaim([&](std::uint32_t block) { blocks.push_back(block); }), good);
    return blocks;
  }
  /// Returns `ticket` as a subscriber does.
  void store_return(std::uint64_t position, std::uint64_t ticket) {
    words_.returns[position % kPlaces].store((position / kPlaces + 1) << layout::kMessageTicketBits | ticket);
  }

  Words words_;
  std::optional<OutQueue> out_;
  std::optional<InQueue> in_;
};

TEST_P(QueueTest, WhatIsPushedIsTakenInOrderWithPlaceAndSize) {
  for (std::uint32_t block = 0; block < 1000; ++block) {
    EXPECT_FALSE(in_->waiting());
    push(block);
    EXPECT_TRUE(in_->waiting());
    const auto entry = take();
    EXPECT_EQ(entry.offset, std::size_t{block} * 128);
    EXPECT_EQ(entry.bytes, block + 1);
    in_->give_back(entry.ticket);
    EXPECT_EQ(reclaim(), std::vector{block});
  }
}

TEST_P(QueueTest, TheLargestOffsetAndSizeFit) {
  out_->push(1, layout::kMessageMaxPool - layout::kMessageGrain, layout::kMessageMaxPool);
  const auto entry = take();
  EXPECT_EQ(entry.offset, layout::kMessageMaxPool - layout::kMessageGrain);
  EXPECT_EQ(entry.bytes, layout::kMessageMaxPool);
}

TEST_P(QueueTest, TicketsComeBackInAnyOrder) {
  for (std::uint32_t block = 0; block < kPlaces; ++block) push(block);
  EXPECT_FALSE(out_->has_room());
  std::array<std::uint16_t, kPlaces> tickets{};
  for (auto& ticket : tickets) ticket = take().ticket;
  for (const std::size_t i : {2U, 0U, 3U, 1U}) in_->give_back(tickets[i]);
  EXPECT_EQ(reclaim(), (std::vector<std::uint32_t>{2, 0, 3, 1}));
  EXPECT_EQ(out_->in_flight(), 0U);
}

TEST_P(QueueTest, ATicketThatWasNotGivenOutBreaksIt) {
  push(0);
  take();
  std::uint64_t position = 0;
  for (const std::uint64_t ticket : {std::uint64_t{1}, std::uint64_t{kPlaces}, std::uint64_t{0xffff}}) {
    store_return(position++, ticket);
    EXPECT_TRUE(reclaim(false).empty()) << ticket;
  }
}

TEST_P(QueueTest, ATicketReturnedTwiceBreaksIt) {
  push(0);
  const auto entry = take();
  in_->give_back(entry.ticket);
  in_->give_back(entry.ticket);
  EXPECT_EQ(reclaim(false), std::vector<std::uint32_t>{0});
}

TEST_P(QueueTest, AReturnOfAnotherLapIsNone) {
  push(0);
  words_.returns[0].store(std::uint64_t{2} << layout::kMessageTicketBits);
  EXPECT_TRUE(reclaim().empty());
}

TEST_P(QueueTest, EverythingInFlightCanBeReclaimedAtOnce) {
  for (std::uint32_t block = 0; block < 3; ++block) push(block);
  in_->give_back(take().ticket);
  reclaim();
  std::vector<std::uint32_t> blocks;
  out_->reclaim_all([&](std::uint32_t block) { blocks.push_back(block); });
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(blocks, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(out_->in_flight(), 0U);
}

INSTANTIATE_TEST_SUITE_P(, QueueTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "drop_oldest" : "wait"; });

class DroppingQueue : public QueueTest {
 protected:
  Room drop(std::uint32_t& block) {
    return out_->drop_oldest([&](std::uint32_t dropped) { block = dropped; });
  }
};

TEST_P(DroppingQueue, TheOldestNotTakenIsDropped) {
  for (std::uint32_t block = 0; block < kPlaces; ++block) push(block);
  take();
  std::uint32_t dropped = 99;
  EXPECT_EQ(drop(dropped), Room::made);
  EXPECT_EQ(dropped, 1U);
  push(4);
  for (const std::size_t expected : {2U, 3U, 4U}) EXPECT_EQ(take().offset, expected * 128);
  EXPECT_EQ(drop(dropped), Room::none) << "all taken";
}

TEST_P(DroppingQueue, ATicketOfWhatStillWaitsIsNotTakenBack) {
  push(0);
  store_return(0, 0);
  EXPECT_TRUE(reclaim(false).empty()) << "it would come back again when it is dropped";
}

TEST_P(DroppingQueue, AHeadThatGoesBackOrBeyondBreaksBothEnds) {
  for (std::uint32_t block = 0; block < 3; ++block) push(block);
  take();
  take();
  std::uint32_t dropped = 99;
  ASSERT_EQ(drop(dropped), Room::made);
  InQueue::Entry entry;
  words_.head = 4;
  EXPECT_EQ(drop(dropped), Room::broken) << "beyond the tail";
  words_.head = 1;
  EXPECT_EQ(drop(dropped), Room::broken);
  EXPECT_EQ(in_->take(entry), Look::broken);
  EXPECT_TRUE(in_->waiting()) << "so that it is noticed";
}

/// Publisher and subscriber compete for the oldest message at all times: each message goes to exactly one of them.
TEST_P(DroppingQueue, EachMessageIsEitherTakenOrDropped) {
  constexpr std::uint32_t kCount = 300'000;
  std::vector<std::uint8_t> taken(kCount), dropped(kCount);
  std::atomic<bool> started{false}, done{false};
  std::thread taker([&] {
    std::uint64_t last = 0;
    std::minstd_rand random(1);
    started = true;
    while (true) {
      const bool was_done = done;
      // About as slow as the publisher, so that both reach the oldest message at the same time.
      for (auto pauses = random() % 16; pauses > 0; --pauses) arch::pause();
      InQueue::Entry entry;
      const Look look = in_->take(entry);
      ASSERT_NE(look, Look::broken);
      if (look == Look::nothing) {
        if (was_done) return;
        continue;
      }
      const std::uint64_t number = entry.bytes - 1;
      ASSERT_EQ(entry.offset, number * 128);
      ASSERT_GE(number, last);
      last = number;
      ++taken[number];
      in_->give_back(entry.ticket);
    }
  });
  std::size_t returned = 0;
  std::minstd_rand random(2);
  while (!started) std::this_thread::yield();
  for (std::uint32_t block = 0; block < kCount; ++block) {
    for (auto pauses = random() % 16; pauses > 0; --pauses) arch::pause();
    while (!out_->has_room()) {
      ASSERT_TRUE(out_->reclaim([&](std::uint32_t) { ++returned; }));
      if (out_->has_room()) break;
      ASSERT_NE(out_->drop_oldest([&](std::uint32_t oldest) { ++dropped[oldest]; }), Room::broken);
    }
    push(block);
  }
  done = true;
  taker.join();
  ASSERT_TRUE(out_->reclaim([&](std::uint32_t) { ++returned; }));
  std::size_t takes = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(taken[i] + dropped[i], 1) << i;
    takes += taken[i];
  }
  EXPECT_EQ(returned, takes);
  EXPECT_GT(takes, 0U);
}

INSTANTIATE_TEST_SUITE_P(, DroppingQueue, ::testing::Values(true), [](const auto&) { return "drop_oldest"; });

}  // namespace
}  // namespace wherry::message
