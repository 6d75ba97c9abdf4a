// SPDX-License-Identifier: Apache-2.0
#include "mailbox/section.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/common/pattern.hpp"

namespace wherry::mailbox {
namespace {

constexpr std::size_t kMost = 1024;

/// Both ends of one section, and the words that pass between them.
class Section : public ::testing::Test {
 protected:
  void resize(std::size_t capacity) {
    ASSERT_TRUE(writer_.drained());
    writer_.resize(capacity);
    reader_.resize(capacity);
  }
  void write(std::size_t bytes) {
    writer_.write(pattern_.bytes(bytes, written_));
    written_ += bytes;
    reader_.see(writer_.publish());
  }
  void read(std::size_t bytes) {
    const ConstRegions got = reader_.peek(bytes);
    ASSERT_EQ(got.size(), bytes);
    EXPECT_TRUE(pattern_.matches(got.first, read_));
    EXPECT_TRUE(pattern_.matches(got.second, read_ + got.first.size()));
    reader_.consume(bytes);
    read_ += bytes;
  }
  void credit() { head_.store(reader_.return_credit()); }

  const Pattern pattern_{3};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kMost);
  layout::Word head_{0};
  layout::Word seen_{0};
  SectionWriter writer_{memory_.data(), &head_, &seen_};
  SectionReader reader_{memory_.data()};
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
};

TEST_F(Section, HoldsExactlyItsCapacityWhereverItBegins) {
  for (std::size_t capacity = 64; capacity <= kMost; capacity += 64) {
    resize(capacity);
    for (std::size_t step = 1; step < 64; ++step) {
      EXPECT_EQ(writer_.room(capacity), capacity);
      write(capacity);
      EXPECT_EQ(writer_.room(1), 0U);
      read(capacity);
      credit();
      ASSERT_GE(writer_.room(step), step);
      write(step);
      read(step);
      credit();
    }
  }
}

TEST_F(Section, BytesPassUnalteredAtAnySizesThroughAnyChangesOfCapacity) {
  std::mt19937_64 random(5);
  resize(64);
  for (int i = 0; i < 100'000; ++i) {
    if (const std::size_t room = writer_.room(kMost); room != 0) write(1 + random() % room);
    if (reader_.fill() != 0) read(1 + random() % reader_.fill());
    if (random() % 2 == 0) credit();
    if (random() % 16 == 0) {
      read(reader_.fill());
      credit();
      ASSERT_TRUE(writer_.drained());
      ASSERT_TRUE(reader_.drained());
      resize(64 * (1 + random() % 16));
    }
  }
  EXPECT_FALSE(writer_.broken());
  EXPECT_FALSE(reader_.broken());
}

TEST_F(Section, BytesPassUnalteredThroughAnOverflowThatIsReusedAsItIsRead) {
  constexpr std::size_t kOverflow = 448;
  std::mt19937_64 random(7);
  std::uint64_t from = 0;
  std::uint64_t longest = 0;
  resize(64);
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t room = writer_.room(kMost);
    if (room != 0 && random() % 4 != 0) write(1 + random() % room);
    if (room == 0 && !writer_.overflows()) {
      from = writer_.tail();
      reader_.overflow(from, kOverflow);
      writer_.overflow(kOverflow);
    }
    if (reader_.fill() != 0 && random() % 4 != 0) read(1 + random() % reader_.fill());
    if (random() % 2 == 0) credit();
    if (!writer_.overflows()) continue;
    longest = std::max(longest, writer_.tail() - from);
    if (writer_.drained()) {
      reader_.leave_overflow();
      writer_.restart();
    } else if (random() % 16 == 0 && writer_.section_drained()) {
      const std::size_t capacity = 64 * (1 + random() % 8);
      writer_.resize(capacity);
      reader_.resize(capacity, true);
    }
  }
  EXPECT_GT(longest, 4 * kOverflow);
  EXPECT_FALSE(writer_.broken());
  EXPECT_FALSE(reader_.broken());
}

TEST_F(Section, TheOverflowHoldsItsBytesWhateverIsUnreadInTheSection) {
  constexpr std::size_t kOverflow = 256;
  resize(128);
  write(128);
  reader_.overflow(writer_.tail(), kOverflow);
  writer_.overflow(kOverflow);
  EXPECT_EQ(writer_.room(kMost), kOverflow);
  write(kOverflow);
  read(100);
  credit();
  EXPECT_EQ(writer_.room(1), 0U);
  EXPECT_FALSE(writer_.section_drained());
  read(28);
  credit();
  EXPECT_FALSE(writer_.section_drained()) << "the reader may not know where the overflow is";
  read(60);
  credit();
  EXPECT_TRUE(writer_.section_drained());
  EXPECT_EQ(writer_.room(kMost), 60U);
}

TEST_F(Section, ATailBeyondTheCreditOfTheOverflowBreaksTheReader) {
  for (const std::uint64_t beyond : {0, 8}) {
    SectionReader reader(memory_.data());
    reader.resize(64);
    reader.overflow(64, 128);
    reader.see(64 + 128);
    reader.consume(64);
    reader.consume(40);
    (void)reader.return_credit();
    reader.see(64 + 128 + 40 + beyond);
    EXPECT_EQ(reader.broken(), beyond != 0);
  }
}

TEST_F(Section, AChangeOfTheSectionBeforeItWasReadBreaksTheReader) {
  for (const std::size_t read : {56, 64, 65}) {
    SectionReader reader(memory_.data());
    reader.resize(64);
    reader.overflow(64, 128);
    reader.see(64 + 8);
    reader.consume(std::min<std::size_t>(read, 64));
    reader.consume(read > 64 ? read - 64 : 0);
    (void)reader.return_credit();
    reader.resize(128, true);
    EXPECT_EQ(reader.broken(), read <= 64);
  }
}

TEST_F(Section, ALengthAtAMultipleOfEightNeverWraps) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 10'000; ++i) {
    resize(64 * (1 + random() % 4));
    write(random() % 64);
    const std::size_t padding = (0 - writer_.tail()) % layout::kMailboxAlign;
    if (writer_.room(kMost) >= padding + 8) {
      write(padding + 8);
      ASSERT_GE(reader_.fill(), padding + 8);
      EXPECT_TRUE(reader_.peek(8, reader_.fill() - 8).second.empty());
    }
    read(reader_.fill());
    credit();
  }
}

TEST_F(Section, WhatIsUnreadOrNotReportedIsNotDrained) {
  resize(64);
  EXPECT_TRUE(writer_.drained());
  write(8);
  EXPECT_FALSE(writer_.drained());
  EXPECT_FALSE(reader_.drained());
  read(8);
  EXPECT_FALSE(reader_.drained());
  EXPECT_FALSE(writer_.drained());
  credit();
  EXPECT_TRUE(reader_.drained());
  EXPECT_TRUE(writer_.drained());
}

TEST_F(Section, ATailBeyondTheCreditOrBackwardsBreaksTheReader) {
  for (const std::uint64_t tail : {std::uint64_t{65 + 8}, std::uint64_t{7}, UINT64_MAX}) {
    SectionReader reader(memory_.data());
    reader.resize(64);
    reader.see(8);
    reader.consume(8);
    (void)reader.return_credit();
    reader.see(tail);
    EXPECT_TRUE(reader.broken()) << tail;
    EXPECT_EQ(reader.fill(), 0U);
  }
}

TEST_F(Section, CreditToldInPassingCountsAndAnOlderOrFalseOneDoesNot) {
  resize(64);
  write(64);
  read(24);
  seen_.store(reader_.piggyback_credit());
  EXPECT_EQ(writer_.room(64), 24U);
  EXPECT_TRUE(writer_.has_read(24));
  EXPECT_FALSE(writer_.has_read(25));
  EXPECT_EQ(reader_.owed(), 24U) << "a writer that sleeps for room is not woken by it";
  read(16);
  credit();
  EXPECT_EQ(writer_.room(64), 40U) << "the older of the two words";
  for (const std::uint64_t wrong : {std::uint64_t{65}, std::uint64_t{39}, UINT64_MAX}) {
    seen_.store(wrong);
    EXPECT_EQ(writer_.room(64), 40U) << wrong;
  }
  EXPECT_FALSE(writer_.broken());
  seen_.store(64);
  EXPECT_TRUE(writer_.drained());
}

TEST_F(Section, AHeadBeyondTheTailOrBackwardsBreaksTheWriter) {
  for (const std::uint64_t head : {std::uint64_t{41}, std::uint64_t{7}, UINT64_MAX}) {
    layout::Word word{8};
    SectionWriter writer(memory_.data(), &word, &seen_);
    writer.resize(64);
    writer.write(pattern_.bytes(40));
    writer.publish();
    EXPECT_EQ(writer.room(64), 32U);
    word.store(head);
    EXPECT_EQ(writer.room(64), 0U) << head;
    EXPECT_TRUE(writer.broken());
  }
}

}  // namespace
}  // namespace wherry::mailbox
