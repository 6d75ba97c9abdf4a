// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamZeroCopy : public StreamTest {
 protected:
  void fill(const Regions& space, std::uint64_t position) const {
    pattern_.fill(space.first, position);
    pattern_.fill(space.second, position + space.first.size());
  }
  [[nodiscard]] bool matches(const ConstRegions& bytes, std::uint64_t position) const {
    return pattern_.matches(bytes.first, position) && pattern_.matches(bytes.second, position + bytes.first.size());
  }
};

TEST_P(StreamZeroCopy, WhatIsCommittedIsPeeked) {
  Streams ends = connect_pair();
  const Regions space = ends.connector.reserve(1000);
  ASSERT_EQ(space.size(), 1000U);
  fill(space, 0);
  EXPECT_TRUE(ends.acceptor.peek().empty()) << "not committed yet";
  EXPECT_EQ(ends.connector.commit(600).bytes, 600U);
  ASSERT_EQ(ends.acceptor.wait_readable(kTimeout).bytes, 600U);
  EXPECT_EQ(ends.acceptor.peek(10).size(), 10U);
  const ConstRegions seen = ends.acceptor.peek();
  EXPECT_EQ(seen.size(), 600U);
  EXPECT_TRUE(matches(seen, 0));
  EXPECT_EQ(ends.acceptor.consume(600).bytes, 600U);
  EXPECT_TRUE(ends.acceptor.peek().empty());
}

TEST_P(StreamZeroCopy, APeekMayBeConsumedInParts) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  EXPECT_EQ(ends.acceptor.peek().size(), 100U);
  EXPECT_TRUE(ends.acceptor.consume(30).ok());
  EXPECT_TRUE(ends.acceptor.consume(30).ok());
  EXPECT_EQ(ends.acceptor.consume(41).error, EINVAL);
  EXPECT_TRUE(matches(ends.acceptor.peek(), 60));
  EXPECT_TRUE(ends.acceptor.consume(40).ok());
}

TEST_P(StreamZeroCopy, MoreThanWasReservedOrShownIsRefused) {
  Streams ends = connect_pair();
  EXPECT_EQ(ends.connector.commit(1).error, EINVAL) << "nothing reserved";
  EXPECT_EQ(ends.acceptor.consume(1).error, EINVAL) << "nothing shown";
  ASSERT_EQ(ends.connector.reserve(10).size(), 10U);
  EXPECT_EQ(ends.connector.commit(11).error, EINVAL);
  EXPECT_EQ(ends.connector.commit(10).bytes, 10U) << "a refusal changes nothing";
  EXPECT_EQ(ends.connector.commit(1).error, EINVAL) << "a reservation is committed once";
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  ASSERT_EQ(ends.acceptor.peek(4).size(), 4U);
  EXPECT_EQ(ends.acceptor.consume(5).error, EINVAL) << "there, but not shown";
  EXPECT_TRUE(ends.acceptor.consume(4).ok());
}

TEST_P(StreamZeroCopy, AnotherSendEndsAReservationAndAnotherReceiveAPeek) {
  Streams ends = connect_pair();
  ASSERT_FALSE(ends.connector.reserve(10).empty());
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(20)).ok());
  EXPECT_EQ(ends.connector.commit(10).error, EINVAL);
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  ASSERT_FALSE(ends.acceptor.peek().empty());
  expect_bytes(ends.acceptor, pattern_, 5);
  EXPECT_EQ(ends.acceptor.consume(1).error, EINVAL);
}

TEST_P(StreamZeroCopy, AFullRingReservesNothing) {
  Streams ends = small_pair();
  EXPECT_EQ(ends.connector.reserve(SIZE_MAX).size(), 4096U);
  fill(ends.connector.reserve(4096), 0);
  ASSERT_TRUE(ends.connector.commit(4096).ok());
  EXPECT_TRUE(ends.connector.reserve(1).empty());
  EXPECT_EQ(ends.connector.wait_writable(1, 1ms).error, ETIMEDOUT);
  expect_bytes(ends.acceptor, pattern_, 4096);
  std::array<std::byte, 1> none{};
  EXPECT_TRUE(ends.acceptor.try_receive(none).would_block());
  EXPECT_EQ(ends.connector.wait_writable(4096, kTimeout).bytes, 4096U);
}

TEST_P(StreamZeroCopy, WaitingForMoreThanHalfTheRingWaitsForHalf) {
  Streams ends = small_pair();
  ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
  expect_bytes(ends.acceptor, pattern_, 3072);
  EXPECT_GE(ends.connector.wait_writable(SIZE_MAX, kTimeout).bytes, 2048U);
}

TEST_P(StreamZeroCopy, BothSidesWrapAtEveryPlace) {
  Streams ends = small_pair();
  std::thread sender([&] {
    std::uint64_t position = 0;
    for (std::size_t size = 1; position < 400'000; size = size * 3 % 4093) {
      const Result writable = ends.connector.wait_writable(size, kTimeout);
      ASSERT_TRUE(writable.ok()) << writable.error;
      const Regions space = ends.connector.reserve(size);
      ASSERT_FALSE(space.empty());
      fill(space, position);
      ASSERT_TRUE(ends.connector.commit(space.size()).ok());
      position += space.size();
    }
    EXPECT_TRUE(ends.connector.finish_sending().ok());
  });
  std::uint64_t position = 0;
  int wrapped = 0;
  Result readable = ends.acceptor.wait_readable(kTimeout);
  for (std::size_t want = 1; readable.ok(); readable = ends.acceptor.wait_readable(kTimeout)) {
    want = want * 5 % 4079 + 1;
    const ConstRegions bytes = ends.acceptor.peek(want);
    EXPECT_FALSE(bytes.empty());
    EXPECT_TRUE(matches(bytes, position));
    wrapped += bytes.second.empty() ? 0 : 1;
    position += bytes.size();
    EXPECT_TRUE(ends.acceptor.consume(bytes.size()).ok());
  }
  sender.join();
  EXPECT_TRUE(readable.ended()) << readable.error;
  EXPECT_GT(wrapped, 10);
  EXPECT_GE(position, 400'000U);
}

TEST_P(StreamZeroCopy, FormsMayBeMixed) {
  Streams ends = small_pair();
  std::uint64_t position = 0;
  for (std::size_t size = 1; size < 1300; size += 17) {
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(size, position), kTimeout).ok());
    ASSERT_TRUE(ends.connector.wait_writable(size, kTimeout).ok());
    const Regions space = ends.connector.reserve(size);
    ASSERT_EQ(space.size(), size);
    fill(space, position + size);
    ASSERT_TRUE(ends.connector.commit(size).ok());
    expect_bytes(ends.acceptor, pattern_, size / 2, position);
    position += size / 2;
    for (std::size_t left = 2 * size - size / 2; left > 0;) {
      ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
      const ConstRegions bytes = ends.acceptor.peek(left);
      ASSERT_TRUE(matches(bytes, position));
      left -= bytes.size();
      position += bytes.size();
      ASSERT_TRUE(ends.acceptor.consume(bytes.size()).ok());
    }
  }
}

WHERRY_ON_EVERY_FABRIC(StreamZeroCopy);

}  // namespace
}  // namespace wherry::conformance
