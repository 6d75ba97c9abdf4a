// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/conformance/fabric_pair.hpp"
#include "tests/conformance/fabric_play.hpp"

namespace wherry::conformance {
namespace {

class FabricPut : public FabricTest {};

TEST_P(FabricPut, FlushedPutsAreThere) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 4 * kPage});
  const Bytes bytes(*ends.connector, 2 * kPage + 3);
  fill(bytes, 1);
  ASSERT_TRUE(put_all(*ends.connector, 5, bytes));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  const auto segment = ends.acceptor->segment();
  EXPECT_TRUE(filled(segment.subspan(5, bytes.size()), 1));
  EXPECT_EQ(segment[4], std::byte{0});
  EXPECT_EQ(segment[5 + bytes.size()], std::byte{0});
}

TEST_P(FabricPut, FlushedGetsAreThere) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 4 * kPage});
  fill(ends.acceptor->segment(), 1);
  const Bytes bytes(*ends.connector, 3 * kPage + 1);
  std::vector<std::byte> expected(4 * kPage);
  fill(expected, 1);
  ASSERT_TRUE(ends.connector->get(bytes, 7));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data() + 7, bytes.size()), 0);
}

TEST_P(FabricPut, APutTakesAPrefix) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 1024 * kPage});
  const Bytes bytes(*ends.connector, 1024 * kPage);
  fill(bytes, 1);
  const std::size_t taken = ends.connector->put(0, bytes);
  EXPECT_GE(taken, 1U);
  EXPECT_LE(taken, bytes.size());
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_EQ(std::memcmp(ends.acceptor->segment().data(), bytes.data(), taken), 0);
}

TEST_P(FabricPut, OutsideTheSegmentNothingIsTaken) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 2 * kPage});
  const Bytes bytes(*ends.connector, kPage, std::byte{1});
  for (const std::uint64_t offset : {2 * kPage, kPage + 1, 3 * kPage, ~std::size_t{0}, ~std::size_t{0} - kPage + 1}) {
    EXPECT_EQ(ends.connector->put(offset, bytes), 0U) << offset;
    EXPECT_FALSE(ends.connector->get(bytes, offset)) << offset;
  }
  const Bytes huge(*ends.connector, 3 * kPage);
  EXPECT_EQ(ends.connector->put(0, huge), 0U);
  EXPECT_FALSE(ends.connector->get(huge, 0));
  EXPECT_TRUE(ends.connector->flush({}).ok());
  const auto segment = ends.acceptor->segment();
  EXPECT_TRUE(std::all_of(segment.begin(), segment.end(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(put_all(*ends.connector, kPage, bytes));
  EXPECT_TRUE(ends.connector->flush({}).ok());  // before the source goes
}

TEST_P(FabricPut, ASignalIsAnAlignedWordWithinTheSegment) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 2 * kPage});
  for (const std::uint64_t offset : {1UL, 4UL, 2 * kPage, 2 * kPage - 4, ~0UL - 7, ~0UL}) {
    EXPECT_FALSE(ends.connector->signal(offset, 1, Bell::data)) << offset;
  }
  EXPECT_TRUE(ends.connector->signal(2 * kPage - 8, 5, Bell::data));
  EXPECT_EQ(await(*ends.acceptor, 2 * kPage - 8, 5, Bell::data), Wake::rung);
}

TEST_P(FabricPut, NothingIsMovedWhenNothingIsAskedFor) {
  const Ends ends = connect_pair();
  EXPECT_EQ(ends.connector->put(0, {}), 0U);
  EXPECT_TRUE(ends.connector->get({}, 0));
  EXPECT_TRUE(ends.connector->flush({}).ok());
}

TEST_P(FabricPut, AFlushWithNothingUnderWayReturns) {
  const Ends ends = connect_pair();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ends.connector->flush({}).ok());
}

TEST_P(FabricPut, SignalsArriveInTheirOrder) {
  const Ends ends = connect_pair();
  constexpr std::uint64_t kSignals = 5000;
  std::thread sender([&] {
    for (std::uint64_t i = 1; i <= kSignals; ++i) {
      ends.connector->signal(0, i, Bell::data);
      ends.connector->signal(64, i, Bell::data);
    }
  });
  for (std::uint64_t second = 0; second < kSignals;) {
    EXPECT_EQ(await(*ends.acceptor, 64, second + 1, Bell::data), Wake::rung);
    second = word(*ends.acceptor, 64).load(std::memory_order_acquire);
    ASSERT_GE(word(*ends.acceptor, 0).load(std::memory_order_acquire), second);
  }
  sender.join();
}

TEST_P(FabricPut, EveryPutBeforeASignalIsVisibleWithIt) {
  const Ends ends = connect_pair(Rounds::offer(), Rounds::offer());
  std::thread receiver([&] { Rounds::receive(*ends.acceptor, 1); });
  Rounds::send(*ends.connector, 1);
  receiver.join();
}

TEST_P(FabricPut, APutIsVisibleWithTheWordThatTravelsWithIt) {
  constexpr std::size_t kMost = 200'000;
  constexpr std::uint64_t kFrom = 128, kRounds = 200;
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 50 * kPage});
  const auto size_of = [](std::uint64_t round) { return std::size_t{1} + round * round * 977 % kMost; };
  std::thread receiver([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      ASSERT_EQ(await(*ends.acceptor, 0, round, Bell::data), Wake::rung);
      ASSERT_TRUE(filled(ends.acceptor->segment().subspan(kFrom, size_of(round)), round)) << round;
      ASSERT_TRUE(ends.acceptor->signal(64, round, Bell::space));
    }
  });
  const Bytes source(*ends.connector, kMost);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto bytes = source.span().first(size_of(round));
    fill(bytes, round);
    ASSERT_TRUE(ends.connector->put_and_signal(kFrom, bytes, 0, round, Bell::data));
    ASSERT_EQ(await(*ends.connector, 64, round, Bell::space), Wake::rung);
  }
  receiver.join();
}

TEST_P(FabricPut, AWordThatTravelsIsCheckedWithItsPut) {
  const Ends ends = connect_pair();
  const Bytes source(*ends.connector, kPage, std::byte{1});
  EXPECT_FALSE(ends.connector->put_and_signal(8, source, 0, 1, Bell::data));
  for (const std::uint64_t wrong : {4UL, kPage - 4, kPage, ~0UL - 7}) {
    EXPECT_FALSE(ends.connector->put_and_signal(64, source.span().first(100), wrong, 1, Bell::data)) << wrong;
  }
  EXPECT_TRUE(ends.connector->put_and_signal(0, {}, kPage - 8, 5, Bell::data)) << "a word alone";
  EXPECT_EQ(await(*ends.acceptor, kPage - 8, 5, Bell::data), Wake::rung);
  const auto rest = ends.acceptor->segment().first(kPage - 8);
  EXPECT_TRUE(std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(FabricPut, BothDirectionsAtOnceOneThreadEach) {
  const Ends ends = connect_pair(Rounds::offer(), Rounds::offer());
  std::vector<std::thread> threads;
  threads.emplace_back([&] { Rounds::send(*ends.connector, 1); });
  threads.emplace_back([&] { Rounds::receive(*ends.acceptor, 1); });
  threads.emplace_back([&] { Rounds::send(*ends.acceptor, 2); });
  threads.emplace_back([&] { Rounds::receive(*ends.connector, 2); });
  for (auto& thread : threads) thread.join();
}

// A stream may be moved to another thread between calls.
TEST_P(FabricPut, ASignalCoversWhatAnotherThreadPutBefore) {
  const Ends ends = connect_pair(Rounds::offer(), Rounds::offer());
  const Bytes source(*ends.connector, Rounds::kBytes);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    fill(source, round);
    std::thread([&] { ASSERT_TRUE(put_all(*ends.connector, Rounds::kWords, source)); }).join();
    ASSERT_TRUE(ends.connector->signal(0, round, Bell::data));
    ASSERT_EQ(await(*ends.acceptor, 0, round, Bell::data), Wake::rung);
    ASSERT_TRUE(filled(ends.acceptor->segment().subspan(Rounds::kWords), round));
  }
}

WHERRY_ON_EVERY_FABRIC(FabricPut);

}  // namespace
}  // namespace wherry::conformance
