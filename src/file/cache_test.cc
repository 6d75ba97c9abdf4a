// SPDX-License-Identifier: Apache-2.0
#include "file/cache.hpp"

#include "base/child_process.hpp"
#include "tests/common/file_cache.hpp"

namespace wherry::file {
namespace {

using std::byte;

class FileCache : public ::testing::Test {
 protected:
  ~FileCache() override { EXPECT_EQ(broken_invariant(*segment_), ""); }

  /// Whether the cache serves that range, rightly.
  bool hits(std::uint64_t offset, std::size_t bytes) {
    std::vector<byte> got(bytes, byte{0xEE});
    if (!cache_->read(opened_, offset, got)) return false;
    EXPECT_TRUE(std::ranges::equal(got, file_.content().subspan(offset, bytes))) << "at " << offset;
    return true;
  }
  bool fill(std::uint64_t block) { return fill_block(*cache_, opened_, file_.descriptor(), block); }

  TestSegment segment_;
  TestFile file_{10 * kBlockBytes + 100};
  TestCache cache_{segment_};
  File opened_ = open_usable(*cache_, file_);
};

TEST_F(FileCache, ServesWhatWasFilledAndNothingElse) {
  EXPECT_FALSE(hits(0, 1));
  ASSERT_TRUE(fill(0));
  ASSERT_TRUE(fill(1));
  EXPECT_TRUE(hits(0, 1));
  EXPECT_TRUE(hits(5, kBlockBytes));
  EXPECT_TRUE(hits(0, 2 * kBlockBytes));
  EXPECT_FALSE(hits(0, 2 * kBlockBytes + 1));
  EXPECT_FALSE(hits(2 * kBlockBytes, 1));
  const Counts counts = cache_->counts();
  EXPECT_EQ(counts.hits, 3U);
  EXPECT_EQ(counts.hit_bytes, 1 + 3 * kBlockBytes);
  EXPECT_EQ(counts.misses, 3U);
  EXPECT_EQ(counts.fills, 2U);
}

TEST_F(FileCache, LeavesTheEndOfTheFileToTheKernel) {
  ASSERT_TRUE(fill(10));
  EXPECT_TRUE(hits(10 * kBlockBytes, 100));
  std::array<byte, 101> over{};
  EXPECT_FALSE(cache_->read(opened_, 10 * kBlockBytes, over));
  EXPECT_FALSE(cache_->read(opened_, 10 * kBlockBytes + 100, std::span(over).first(1)));
  EXPECT_FALSE(cache_->read(opened_, 0, {}));
  EXPECT_FALSE(fill(11)) << "nothing is there";
}

TEST_F(FileCache, RefusesOffsetsBeyondWhatAFileCanHave) {
  std::array<byte, 16> some{};
  for (const std::uint64_t offset :
       {UINT64_MAX, UINT64_MAX - 3, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 4}) {
    EXPECT_FALSE(cache_->read(opened_, offset, some));
    EXPECT_FALSE(cache_->fill(opened_, offset / kBlockBytes, Admission::first_touch) &&
                 offset / kBlockBytes > kLastBlock);
    const Change change(*cache_, file_.key(), offset, UINT64_MAX);
  }
  EXPECT_FALSE(cache_->fill(opened_, kLastBlock + 1, Admission::first_touch));
  EXPECT_TRUE(cache_->fill(opened_, kLastBlock, Admission::first_touch));
}

TEST_F(FileCache, DropsWhatAChangeReachesAndKeepsTheRest) {
  for (std::uint64_t block = 0; block < 4; ++block) ASSERT_TRUE(fill(block));
  {
    const Change change(*cache_, file_.key(), 2 * kBlockBytes - 1, 2);
    EXPECT_TRUE(hits(0, kBlockBytes));
    EXPECT_FALSE(hits(kBlockBytes, 1));
    EXPECT_FALSE(hits(2 * kBlockBytes, 1));
    EXPECT_TRUE(hits(3 * kBlockBytes, 1));
    EXPECT_FALSE(fill(1)) << "it is being changed";
    EXPECT_FALSE(fill(2)) << "it is being changed";
    EXPECT_TRUE(fill(4)) << "this one is not";
    file_.write(2 * kBlockBytes - 1, 2, 7);
  }
  EXPECT_TRUE(fill(1));
  EXPECT_TRUE(fill(2));
  EXPECT_TRUE(hits(0, 5 * kBlockBytes));
}

TEST_F(FileCache, DropsTheWholeFileForAChangeOfAnyPart) {
  for (std::uint64_t block = 0; block < 4; ++block) ASSERT_TRUE(fill(block));
  {
    const Change change(*cache_, file_.key());
    for (std::uint64_t block = 0; block < 4; ++block) EXPECT_FALSE(hits(block * kBlockBytes, 1));
    EXPECT_FALSE(fill(9));
  }
  EXPECT_TRUE(fill(9));
}

TEST_F(FileCache, AChangeOfAnotherFileDisturbsNothing) {
  ASSERT_TRUE(fill(0));
  const TestFile other(100);
  const Change change(*cache_, other.key());
  EXPECT_TRUE(hits(0, 1));
  EXPECT_TRUE(fill(1));
}

TEST_F(FileCache, AChangeWhileABlockIsFilledKeepsItOut) {
  Fill fill = cache_->fill(opened_, 0, Admission::first_touch);
  ASSERT_TRUE(fill);
  ASSERT_GT(::pread(file_.descriptor(), fill.memory().data(), kBlockBytes, 0), 0);
  {
    const Change change(*cache_, file_.key(), 0, 1);
    file_.write(0, 1, 0x55);
  }
  EXPECT_FALSE(fill.publish(kBlockBytes));
  EXPECT_FALSE(hits(0, 1));
  EXPECT_EQ(cache_->counts().lost_fills, 1U);
  EXPECT_TRUE(this->fill(0));
  EXPECT_TRUE(hits(0, 1));
}

// The bytes of a fill that was cancelled may still be on their way when the next one begins: they must not meet.
TEST_F(FileCache, NobodyElseGetsTheMemoryOfACancelledFill) {
  std::vector<Fill> cancelled;
  for (std::uint64_t block = 0; block < layout::kFileWays; ++block) {
    cancelled.push_back(cache_->fill(opened_, block * segment_->sets(), Admission::first_touch));
    ASSERT_TRUE(cancelled.back());
  }
  {
    const Change change(*cache_, file_.key(), 0, 1);
  }
  cache_->drop(file_.key(), 0, 8 * segment_->sets() * kBlockBytes);
  EXPECT_FALSE(fill(0)) << "all eight are still being stored into";
  cancelled.front() = {};
  EXPECT_TRUE(fill(0));
}

TEST_F(FileCache, AnAbandonedFillLeavesItsPlaceToOthers) {
  for (int i = 0; i < 100; ++i) {
    Fill fill = cache_->fill(opened_, 0, Admission::first_touch);
    ASSERT_TRUE(fill);
    EXPECT_FALSE(i % 2 == 0 && fill.publish(0));
  }
  EXPECT_FALSE(hits(0, 1));
}

TEST_F(FileCache, AChangeOfAFileOfWhichNothingWasFilledDropsNothing) {
  const auto changes = [&] {
    {
      const Change whole(*cache_, file_.key());
    }
    return cache_->counts().drop_alls;
  };
  const std::uint64_t before = changes();
  EXPECT_EQ(changes(), before);
  ASSERT_TRUE(fill(0));
  EXPECT_EQ(changes(), before + 1);
  EXPECT_FALSE(hits(0, 1));
  EXPECT_EQ(changes(), before + 1);
  Fill under_way = cache_->fill(opened_, 1, Admission::first_touch);
  ASSERT_TRUE(under_way);
  EXPECT_EQ(changes(), before + 2);
  EXPECT_FALSE(under_way.publish(kBlockBytes) && hits(kBlockBytes, 1));
}

TEST_F(FileCache, OneBlockIsFilledOnceAtATime) {
  Fill first = cache_->fill(opened_, 0, Admission::first_touch);
  EXPECT_TRUE(first);
  EXPECT_FALSE(cache_->fill(opened_, 0, Admission::first_touch));
  first = {};
  ASSERT_TRUE(fill(0));
  EXPECT_FALSE(cache_->fill(opened_, 0, Admission::first_touch)) << "it is there";
}

TEST_F(FileCache, AReaderInOrderIsRememberedByItsSpanAndForOneReaderOnly) {
  EXPECT_FALSE(cache_->was_passed(opened_, 0));
  EXPECT_TRUE(cache_->was_passed(opened_, kSpan - 1));
  EXPECT_FALSE(cache_->was_passed(opened_, kSpan));
  EXPECT_FALSE(cache_->was_passed(opened_, 0)) << "it was told once";
  EXPECT_FALSE(cache_->fill(opened_, 0, Admission::second_touch)) << "a block of its number is another thing";
  EXPECT_TRUE(cache_->fill(opened_, 1, Admission::wanted_again));
  cache_->drop_all(file_.key());
  EXPECT_FALSE(cache_->was_passed(opened_, kSpan)) << "of what the file was before it was changed";
}

TEST_F(FileCache, SecondTouchFillsAtTheSecondMiss) {
  EXPECT_FALSE(cache_->fill(opened_, 3, Admission::second_touch));
  EXPECT_TRUE(cache_->fill(opened_, 3, Admission::second_touch));
  EXPECT_EQ(admission(4096, true), Admission::first_touch);
  EXPECT_EQ(admission(4096, false), Admission::second_touch);
  EXPECT_EQ(admission(kLargeRead, true), Admission::second_touch);
}

// 8 ways: the ninth block of a set takes the place of one that was not read lately.
TEST_F(FileCache, AFullSetGivesUpWhatWasNotRead) {
  TestFile large((12 * segment_->sets() + 1) * kBlockBytes);
  const File opened = open_usable(*cache_, large);
  const auto block = [&](std::uint64_t i) { return i * segment_->sets(); };
  std::array<byte, 16> got{};
  const auto there = [&](std::uint64_t i) { return cache_->read(opened, block(i) * kBlockBytes, got); };
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(fill_block(*cache_, opened, large.descriptor(), block(i)));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(i == 5 || there(i));
  }
  ASSERT_TRUE(fill_block(*cache_, opened, large.descriptor(), block(8)));
  EXPECT_FALSE(there(5));
  EXPECT_TRUE(there(8));
  for (std::uint64_t i = 0; i < 12; ++i) {
    const bool right = !there(i) || std::ranges::equal(got, large.content().subspan(block(i) * kBlockBytes, 16));
    EXPECT_TRUE(right);
  }
}

TEST_F(FileCache, AnotherStampDropsTheFile) {
  ASSERT_TRUE(fill(0));
  const Stamp before = file_.stamp();
  EXPECT_EQ(cache_->validate(opened_, before), Validity::usable);
  EXPECT_TRUE(hits(0, 1));
  ::usleep(20'000);  // another time on the clock that stamps files
  file_.write(0, 1, 0x66);
  EXPECT_EQ(cache_->validate(opened_, file_.stamp()), Validity::usable);
  EXPECT_FALSE(hits(0, 1));
  ASSERT_TRUE(fill(0));
  EXPECT_EQ(cache_->validate(opened_, before), Validity::usable) << "somebody who was slow";
  EXPECT_FALSE(hits(0, 1));
}

TEST_F(FileCache, AYoungStampProvesNothing) {
  ASSERT_TRUE(fill(0));
  const struct ::stat status = file_.status();
  const std::uint64_t changed = static_cast<std::uint64_t>(status.st_ctim.tv_sec) * 1'000'000'000 +
                                static_cast<std::uint64_t>(status.st_ctim.tv_nsec);
  for (const std::uint64_t now : {changed, changed + kSettledAfter, changed - 1'000'000, std::uint64_t{0}}) {
    EXPECT_FALSE(Stamp(status, now, Writers::none).settled());
  }
  EXPECT_TRUE(Stamp(status, changed + kSettledAfter + 1, Writers::none).settled());
  EXPECT_EQ(cache_->validate(opened_, Stamp(status, changed, Writers::none)), Validity::usable)
      << "known, and settled before";

  struct ::stat young = status;
  young.st_size += 1;
  EXPECT_EQ(cache_->validate(opened_, Stamp(young, changed, Writers::none)), Validity::unsettled);
  EXPECT_FALSE(hits(0, 1));
  EXPECT_FALSE(fill(0)) << "not validated";
  EXPECT_EQ(cache_->validate(opened_, Stamp(young, changed + kSettledAfter + 1, Writers::none)), Validity::usable);
  EXPECT_TRUE(fill(0));
}

// ext3, and ext4 with small inodes.
TEST_F(FileCache, AStampOfAWholeSecondIsYoungForTwo) {
  struct ::stat status = file_.status();
  status.st_ctim.tv_nsec = 0;
  const std::uint64_t changed = static_cast<std::uint64_t>(status.st_ctim.tv_sec) * 1'000'000'000;
  EXPECT_FALSE(Stamp(status, changed + 1'999'999'999, Writers::none).settled());
  EXPECT_TRUE(Stamp(status, changed + 2'000'000'001, Writers::none).settled());
}

/// As `validate` of a descriptor, so long after the file was changed.
Validity validate_after(Cache& cache, const File& opened, const TestFile& file, std::uint64_t nanoseconds) {
  const UniqueFd reader(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  const struct ::stat status = file.status();
  const std::uint64_t changed = static_cast<std::uint64_t>(status.st_ctim.tv_sec) * 1'000'000'000 +
                                static_cast<std::uint64_t>(status.st_ctim.tv_nsec);
  return validate(cache, opened, reader.get(), status, changed + nanoseconds);
}

// Its last call may be inside still, and has stamped the file already.
TEST_F(FileCache, AFileThatIsOpenToWriteSettlesLater) {
  const TestFile file(100);
  const File opened = cache_->open(file.key());
  EXPECT_EQ(writers_of(file.descriptor()), Writers::perhaps);
  EXPECT_EQ(validate_after(*cache_, opened, file, kSettledWithWriters), Validity::unsettled);
  EXPECT_EQ(validate_after(*cache_, opened, file, 2 * kSettledWithWriters), Validity::usable);
}

TEST_F(FileCache, WhatTheCardWritesItselfSettlesSoon) {
  const TestFile file(100);
  const File opened = cache_->open(file.key());
  {
    const Change change(*cache_, file.key());
  }
  EXPECT_EQ(validate_after(*cache_, opened, file, 2 * kSettledAfter), Validity::usable);
}

TEST_F(FileCache, AFileThatIsNotOpenToWriteSettlesSoon) {
  TestFile file(100);
  file.close();
  const UniqueFd reader(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (writers_of(reader.get()) == Writers::perhaps) GTEST_SKIP() << "this file system or kernel gives no leases";
  EXPECT_EQ(validate_after(*cache_, cache_->open(file.key()), file, 2 * kSettledAfter), Validity::usable);
  EXPECT_EQ(::fcntl(reader.get(), F_GETSIG), 0) << "the program's own description is as it was";
  EXPECT_EQ(::fcntl(reader.get(), F_GETLEASE), F_UNLCK);
}

TEST_F(FileCache, WhatWasCachedBesideAWriterIsDroppedOnceThereIsNone) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<volatile unsigned char*>(memory);
  bytes[0] = bytes[0];  // stamps the file; the next store does not
  ASSERT_EQ(validate_after(*cache_, opened_, file_, 2 * kSettledWithWriters), Validity::usable);
  ASSERT_TRUE(fill(0));
  bytes[0] = static_cast<unsigned char>(~bytes[0]);
  ::munmap(memory, 4096);
  file_.close();
  const UniqueFd reader(::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!tells_of_mapped_stores(reader.get())) GTEST_SKIP() << "no leases here, or no stamps of mapped stores";
  EXPECT_EQ(validate_after(*cache_, opened_, file_, 2 * kSettledWithWriters), Validity::usable);
  EXPECT_FALSE(hits(0, 1));
}

TEST_F(FileCache, StampsOfFilesThatWereMadeTogetherDiffer) {
  struct ::stat one = file_.status();
  struct ::stat other = one;
  other.st_ino += 1;
  EXPECT_NE(Stamp(one, 0).value(), Stamp(other, 0).value());
}

TEST_F(FileCache, AMarkedFileIsNotCachedUntilTheLastMarkIsGone) {
  ASSERT_TRUE(fill(0));
  const Mark first = cache_->mark(file_.key());
  const Mark second = cache_->mark(file_.key());
  EXPECT_FALSE(hits(0, 1));
  EXPECT_FALSE(fill(0));
  EXPECT_EQ(cache_->validate(opened_, file_.stamp()), Validity::has_writer);
  cache_->unmark(first);
  EXPECT_FALSE(fill(0));
  cache_->unmark(second);
  EXPECT_EQ(cache_->validate(opened_, file_.stamp()), Validity::usable);
  EXPECT_TRUE(fill(0));
}

TEST_F(FileCache, WhatRunsUnseenPutsAllFilesOutOfTheCache) {
  ASSERT_TRUE(fill(0));
  const Mark mark = cache_->mark_all();
  EXPECT_FALSE(hits(0, 1));
  EXPECT_FALSE(fill(0));
  cache_->unmark(mark);
  EXPECT_TRUE(fill(0));
}

TEST_F(FileCache, WithoutAnAttachedCacheEveryCallDoesNothing) {
  Cache none;
  std::array<byte, 16> some{};
  const File file = none.open(file_.key());
  EXPECT_TRUE(file.none());
  EXPECT_EQ(none.validate(opened_, file_.stamp()), Validity::unsettled);
  EXPECT_FALSE(none.read(opened_, 0, some));
  EXPECT_FALSE(none.fill(opened_, 0, Admission::first_touch));
  {
    const Change change(none, file_.key());
  }
  none.unmark(none.mark(file_.key()));
  none.unmark(none.mark_all());
  none.drop(file_.key(), 0, 1);
  none.detach();
  EXPECT_FALSE(none.after_fork());
  EXPECT_EQ(none.counts().hits, 0U);
}

TEST_F(FileCache, WhatAProcessFilledAnotherReadsAndItsChangeIsSeen) {
  ASSERT_TRUE(fill(0));
  Child other([&] {
    TestCache own(segment_);
    const File opened = open_usable(*own, file_);
    std::array<byte, 64> got{};
    if (!own->read(opened, 0, got) || !std::ranges::equal(got, file_.content().first(64))) return false;
    const Change change(*own, file_.key(), 0, 1);
    file_.write(0, 1, 0x77);
    return true;
  });
  EXPECT_EQ(other.wait(), 0);
  std::array<byte, 1> got{};
  EXPECT_FALSE(cache_->read(opened_, 0, got));
  ASSERT_TRUE(fill(0));
  ASSERT_TRUE(cache_->read(opened_, 0, got));
  EXPECT_EQ(got[0], byte{0x77});
}

TEST_F(FileCache, AForkedChildIsAClientOfItsOwn) {
  Child told([&] {
    if (cache_->after_fork()) return false;
    return fill_block(*cache_, opened_, file_.descriptor(), 0) &&
           segment_->client(2).pid == static_cast<std::uint64_t>(::getpid());
  });
  EXPECT_EQ(told.wait(), 0);
  repair(*segment_, 2, false);
  EXPECT_EQ(segment_->client(2).pid, 0U);
  EXPECT_TRUE(hits(0, 1));
  Child not_told([&] {
    {
      const Change change(*cache_, file_.key(), 0, 1);
    }
    return segment_->client(2).pid == static_cast<std::uint64_t>(::getpid());
  });
  EXPECT_EQ(not_told.wait(), 0);
  repair(*segment_, 2, false);
}

}  // namespace
}  // namespace wherry::file
