// SPDX-License-Identifier: Apache-2.0
#include "ring/ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/common/time_limit.hpp"

namespace wherry::ring {
namespace {

/// Both ends of a ring, and its memory between guard bytes.
struct Ring {
  explicit Ring(std::size_t capacity, std::uint64_t start = 0) : memory(capacity + 2 * kGuard, kGuardByte) {
    advance(start);
  }

  [[nodiscard]] View view() { return {memory.data() + kGuard, memory.size() - 2 * kGuard}; }

  /// Moves both ends to position `start` as traffic would.
  void advance(std::uint64_t start) {
    std::vector<std::byte> bytes(view().capacity);
    for (std::uint64_t done = 0; done < start;) {
      const auto n = std::min<std::uint64_t>(start - done, bytes.size());
      ASSERT_EQ(producer.copy_in({bytes.data(), n}), n);
      producer.commit(n);
      ASSERT_EQ(consumer.copy_out({bytes.data(), n}), n);
      consumer.return_credit();
      done += n;
    }
  }

  [[nodiscard]] bool guards_intact() const {
    const auto intact = [](std::byte b) { return b == kGuardByte; };
    return std::all_of(memory.begin(), memory.begin() + kGuard, intact) &&
           std::all_of(memory.end() - kGuard, memory.end(), intact);
  }

  static constexpr std::ptrdiff_t kGuard = 64;
  static constexpr std::byte kGuardByte{0xA5};

  std::vector<std::byte> memory;
  layout::Word head{0};
  layout::Word tail{0};
  Producer producer{view(), &head, &tail};
  Consumer consumer{view(), &tail, &head};
};

std::vector<std::byte> numbered(std::size_t count, std::size_t from = 0) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((from + i) * 7 + (from + i) / 251);
  return bytes;
}

TEST(RoundCapacity, RoundsUpToAPowerOfTwoWithinTheLimits) {
  EXPECT_EQ(round_capacity(0), kMinCapacity);
  EXPECT_EQ(round_capacity(1), kMinCapacity);
  EXPECT_EQ(round_capacity(kMinCapacity), kMinCapacity);
  EXPECT_EQ(round_capacity(kMinCapacity + 1), 2 * kMinCapacity);
  EXPECT_EQ(round_capacity(100'000), 131'072U);
  EXPECT_EQ(round_capacity(kMaxCapacity - 1), kMaxCapacity);
  EXPECT_EQ(round_capacity(kMaxCapacity + 1), kMaxCapacity);
  EXPECT_EQ(round_capacity(SIZE_MAX), kMaxCapacity);
}

TEST(View, ARangeThatReachesTheEndComesInTwoPieces) {
  std::vector<std::byte> memory(64);
  const View view{memory.data(), memory.size()};
  const Regions one = view.at(64 + 60, 4);
  EXPECT_EQ(one.first.data(), memory.data() + 60);
  EXPECT_EQ(one.first.size(), 4U);
  EXPECT_TRUE(one.second.empty());
  const Regions two = view.at(128 + 60, 10);
  EXPECT_EQ(two.first.size(), 4U);
  EXPECT_EQ(two.second.data(), memory.data());
  EXPECT_EQ(two.second.size(), 6U);
  EXPECT_EQ(two.size(), 10U);
}

TEST(Ring, NothingIsSeenBeforeItIsCommitted) {
  Ring ring(4096);
  const auto bytes = numbered(100);
  EXPECT_EQ(ring.producer.copy_in(bytes), 100U);
  EXPECT_EQ(ring.consumer.fill(), 0U);
  EXPECT_TRUE(ring.consumer.peek(100).empty());
  EXPECT_EQ(ring.producer.commit(100), 100U);
  EXPECT_EQ(ring.consumer.fill(), 100U);
}

TEST(Ring, AFullRingTakesNothingAndAnEmptyOneGivesNothing) {
  Ring ring(4096);
  const auto bytes = numbered(4096);
  EXPECT_EQ(ring.producer.copy_in(bytes), 4096U);
  ring.producer.commit(4096);
  EXPECT_EQ(ring.producer.space(), 0U);
  EXPECT_EQ(ring.producer.copy_in({bytes.data(), 1}), 0U);
  EXPECT_TRUE(ring.producer.reserve(1).empty());
  std::vector<std::byte> read(5000);
  EXPECT_EQ(ring.consumer.copy_out(read), 4096U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), read.begin()));
  EXPECT_EQ(ring.consumer.copy_out(read), 0U);
}

TEST(Ring, BytesWrapAtEveryPlace) {
  Ring ring(4096);
  std::size_t position = 0;
  for (std::size_t size = 1; size <= 4096; size += size / 3 + 1) {
    for (int round = 0; round < 50; ++round) {
      const auto bytes = numbered(size, position);
      ASSERT_EQ(ring.producer.copy_in(bytes), size);
      ring.producer.commit(size);
      std::vector<std::byte> read(size);
      ASSERT_EQ(ring.consumer.copy_out(read), size);
      ASSERT_EQ(read, bytes) << "at " << position;
      ring.consumer.return_credit();
      position += size;
    }
  }
  EXPECT_TRUE(ring.guards_intact());
}

TEST(Ring, PiecesAreCopiedBehindWhatIsNotCommittedYet) {
  Ring ring(4096, 4000);
  const auto bytes = numbered(300);
  std::size_t uncommitted = 0;
  for (const std::size_t piece : {1U, 99U, 200U}) {
    EXPECT_EQ(ring.producer.copy_in({bytes.data() + uncommitted, piece}, uncommitted), piece);
    uncommitted += piece;
  }
  ring.producer.commit(uncommitted);
  std::vector<std::byte> read(300);
  EXPECT_EQ(ring.consumer.copy_out(read), 300U);
  EXPECT_EQ(read, bytes);
}

TEST(Ring, WhatDoesNotFitBehindUncommittedBytesIsCutOff) {
  Ring ring(4096);
  const auto bytes = numbered(5000);
  EXPECT_EQ(ring.producer.copy_in({bytes.data(), 4000}), 4000U);
  EXPECT_EQ(ring.producer.copy_in({bytes.data(), 1000}, 4000), 96U);
  EXPECT_EQ(ring.producer.copy_in({bytes.data(), 1000}, 4096), 0U);
  EXPECT_TRUE(ring.guards_intact());
}

TEST(Ring, ReservedSpaceIsTheRingItself) {
  Ring ring(4096, 4090);
  const Regions space = ring.producer.reserve(10);
  ASSERT_EQ(space.first.size(), 6U);
  ASSERT_EQ(space.second.size(), 4U);
  std::memcpy(space.first.data(), "abcdef", 6);
  std::memcpy(space.second.data(), "ghij", 4);
  ring.producer.commit(8);
  const ConstRegions seen = ring.consumer.peek(100);
  EXPECT_EQ(seen.first.data(), space.first.data());
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_EQ(std::memcmp(seen.second.data(), "gh", 2), 0);
}

TEST(Ring, PeekDoesNotConsume) {
  Ring ring(4096);
  (void)ring.producer.copy_in(numbered(10));
  ring.producer.commit(10);
  EXPECT_EQ(ring.consumer.peek(4).size(), 4U);
  EXPECT_EQ(ring.consumer.peek(100).size(), 10U);
  ring.consumer.consume(3);
  EXPECT_EQ(ring.consumer.peek(100).size(), 7U);
  EXPECT_EQ(ring.consumer.head(), 3U);
}

TEST(Credit, IsDueWhenAQuarterOfTheRingWasReadAndOwedBeforeThat) {
  Ring ring(4096);
  (void)ring.producer.copy_in(numbered(4096));
  ring.producer.commit(4096);
  EXPECT_FALSE(ring.consumer.credit_owed());
  std::vector<std::byte> read(1023);
  (void)ring.consumer.copy_out(read);
  EXPECT_TRUE(ring.consumer.credit_owed());
  EXPECT_FALSE(ring.consumer.credit_due());
  EXPECT_EQ(ring.producer.space(), 0U) << "not returned yet";
  (void)ring.consumer.copy_out({read.data(), 1});
  EXPECT_TRUE(ring.consumer.credit_due());
  EXPECT_EQ(ring.consumer.return_credit(), 1024U);
  EXPECT_FALSE(ring.consumer.credit_owed());
  EXPECT_EQ(ring.producer.space(), 1024U);
}

// Ensures that a producer that waits for at most half the ring is not left waiting.
TEST(Credit, AProducerSeesHalfTheRingWheneverLessThanAQuarterIsUnread) {
  Ring ring(4096);
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(4096);
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t n = ring.producer.copy_in({bytes.data(), 1 + random() % 2000});
    ring.producer.commit(n);
    (void)ring.consumer.copy_out({bytes.data(), 1 + random() % 2000});
    if (ring.consumer.credit_due()) ring.consumer.return_credit();
    if (ring.consumer.fill() <= 1024) {
      ASSERT_GE(ring.producer.space(), 2048U);
    }
  }
}

TEST(PutForm, WithoutAMapEachEndOnlyTellsItsPosition) {
  std::vector<std::byte> memory(4096);
  layout::Word head{0};
  layout::Word tail{0};
  Producer producer({memory.data(), memory.size()}, &head, nullptr);
  Consumer consumer({memory.data(), memory.size()}, &tail, nullptr);
  (void)producer.copy_in(numbered(50));
  const std::uint64_t position = producer.commit(50);
  EXPECT_EQ(tail.load(), 0U);
  tail = position;
  EXPECT_EQ(consumer.fill(), 50U);
  consumer.consume(50);
  EXPECT_EQ(consumer.return_credit(), 50U);
  EXPECT_EQ(head.load(), 0U);
}

// Words written by a hostile or broken peer ------------------------------------------------------------------------

TEST(HostileTail, MoreThanTheRingHoldsBreaksTheConsumerForGood) {
  for (const std::uint64_t wrong : {4097UL, 5000UL, 1UL << 40, ~0UL, 1UL << 63}) {
    Ring ring(4096);
    ring.tail = wrong;
    EXPECT_EQ(ring.consumer.fill(), 0U);
    EXPECT_TRUE(ring.consumer.broken()) << wrong;
    EXPECT_TRUE(ring.consumer.peek(100).empty());
    ring.tail = 10;
    EXPECT_EQ(ring.consumer.fill(), 0U);
    EXPECT_TRUE(ring.consumer.broken());
  }
}

TEST(HostileTail, MayNotGoBack) {
  Ring ring(4096, 3000);
  (void)ring.producer.copy_in(numbered(100));
  ring.producer.commit(100);
  ASSERT_EQ(ring.consumer.fill(), 100U);
  ring.tail = 3050;
  EXPECT_EQ(ring.consumer.fill(), 0U);
  EXPECT_TRUE(ring.consumer.broken());
}

TEST(HostileTail, MayNotRunAheadOfTheCreditReturned) {
  Ring ring(4096);
  (void)ring.producer.copy_in(numbered(4096));
  ring.producer.commit(4096);
  std::vector<std::byte> read(500);
  (void)ring.consumer.copy_out(read);
  ring.tail = 4097;  // legal only if the credit of the 500 bytes were returned
  EXPECT_EQ(ring.consumer.fill(), 0U);
  EXPECT_TRUE(ring.consumer.broken());
}

TEST(HostileHead, BeyondWhatWasWrittenBreaksTheProducerForGood) {
  for (const std::uint64_t wrong : {101UL, 1UL << 40, ~0UL}) {
    Ring ring(4096);
    (void)ring.producer.copy_in(numbered(100));
    ring.producer.commit(100);
    ring.head = wrong;
    EXPECT_EQ(ring.producer.space(), 0U);
    EXPECT_TRUE(ring.producer.broken()) << wrong;
    ring.head = 0;
    EXPECT_EQ(ring.producer.space(), 0U);
    EXPECT_EQ(ring.producer.copy_in(numbered(10)), 0U);
    EXPECT_TRUE(ring.producer.reserve(10).empty());
  }
}

TEST(HostileHead, MayNotGoBack) {
  Ring ring(4096, 1000);
  ASSERT_EQ(ring.producer.space(), 4096U);
  ring.head = 500;
  EXPECT_EQ(ring.producer.space(), 0U);
  EXPECT_TRUE(ring.producer.broken());
}

TEST(HostileHead, BetweenTwoCopiesOfOneCommitCutsTheSecondOff) {
  Ring ring(4096);
  const auto bytes = numbered(4096);
  EXPECT_EQ(ring.producer.copy_in({bytes.data(), 100}), 100U);
  ring.head = 12345;
  EXPECT_EQ(ring.producer.copy_in(bytes, 100), 0U);
  EXPECT_TRUE(ring.producer.broken());
  EXPECT_TRUE(ring.guards_intact());
}

TEST(HostileWords, NeitherEndLeavesTheRingWhateverItReads) {
  std::mt19937_64 random(7);
  std::vector<std::byte> bytes(9000);
  for (int round = 0; round < 20'000; ++round) {
    Ring ring(4096);
    std::size_t uncommitted = 0;
    for (int step = 0; step < 12 && !(ring.producer.broken() && ring.consumer.broken()); ++step) {
      const std::uint64_t value = random() % 2 == 0 ? random() % 10'000 : random();
      switch (random() % 6) {
        case 0:
          ring.head = value;
          break;
        case 1:
          ring.tail = value;
          break;
        case 2:
          uncommitted += ring.producer.copy_in({bytes.data(), random() % bytes.size()}, uncommitted);
          break;
        case 3:
          ring.producer.commit(std::exchange(uncommitted, 0));
          break;
        case 4:
          (void)ring.consumer.copy_out({bytes.data(), random() % bytes.size()});
          break;
        default:
          ring.consumer.return_credit();
          break;
      }
      ASSERT_LE(ring.consumer.known_fill(), 4096U);
    }
    ASSERT_TRUE(ring.guards_intact());
  }
}

// Two threads ------------------------------------------------------------------------------------------------------

/// Writes until `total`. When the time is up, lowers `total` to the bytes written.
void write_all(Producer& producer, std::atomic<std::uint64_t>& total, std::uint64_t seed) {
  const TimeLimit limit(std::chrono::seconds(1));
  std::mt19937_64 random(seed);
  const std::uint64_t most = total;
  for (std::uint64_t done = 0; done < most;) {
    if (limit.over()) return total.store(done);
    const auto bytes = numbered(std::min<std::uint64_t>(most - done, 1 + random() % 3000), done);
    const std::size_t n = producer.copy_in(bytes);
    producer.commit(n);
    if (n == 0) std::this_thread::yield();
    done += n;
  }
}

TEST(TwoThreads, EveryByteArrivesInOrder) {
  for (const std::size_t capacity : {4096UL, 65536UL}) {
    std::atomic<std::uint64_t> total{4 << 20};
    Ring ring(capacity);
    std::thread writer([&] { write_all(ring.producer, total, 1); });
    std::mt19937_64 random(2);
    std::vector<std::byte> read(5000);
    int altered = 0;
    for (std::uint64_t done = 0; done < total.load(std::memory_order_relaxed);) {
      const std::size_t n = ring.consumer.copy_out({read.data(), 1 + random() % read.size()});
      const auto expected = numbered(n, done);
      altered += std::equal(expected.begin(), expected.end(), read.begin()) ? 0 : 1;
      if (n == 0 || ring.consumer.credit_due()) ring.consumer.return_credit();
      if (n == 0) std::this_thread::yield();
      done += n;
    }
    writer.join();
    EXPECT_EQ(altered, 0);
    EXPECT_FALSE(ring.producer.broken());
    EXPECT_FALSE(ring.consumer.broken());
  }
}

}  // namespace
}  // namespace wherry::ring
