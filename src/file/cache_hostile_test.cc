// SPDX-License-Identifier: Apache-2.0
//
// Another process of the same user may write anything anywhere in the segment, at any time: what is read may be wrong
// then, but nothing is read or written outside, and every call returns.
#include <signal.h>

#include <random>

#include "base/child_process.hpp"
#include "file/cache.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

using std::byte;

class FileCacheHostile : public ::testing::Test {
 protected:
  /// Every call there is.
  void use(Cache& cache, std::mt19937& random) {
    const Key key(random() % 3, random() % 40);
    File file = cache.open(key);
    (void)cache.validate(file, file_.stamp());
    if (random() % 16 == 0) file.slot = static_cast<std::uint32_t>(random());
    std::vector<byte> to(random() % 70'000 + 1);
    (void)cache.read(file, random() % (1 << 20), to);
    Fill fill = cache.fill(file, random() % 64, Admission::first_touch);
    if (fill) std::ranges::fill(fill.memory(), byte{1});
    const Change change(cache, key, random() % (1 << 20), random() % (1 << 20));
    (void)fill.publish(random() % (2 * kBlockBytes));
    const Mark mark = random() % 8 == 0 ? cache.mark_all() : cache.mark(key);
    cache.drop_all(key);
    cache.unmark(mark);
    cache.unmark({static_cast<std::uint32_t>(random())});
    (void)cache.counts();
    repair(*segment_, random() % 20'000, random() % 2 == 0);
  }

  /// A word as an attacker would choose it that knows the layout.
  static std::uint64_t spiteful(std::mt19937& random) {
    const std::uint64_t any = std::uint64_t{random()} << 32 | random();
    switch (random() % 6) {
      case 0:
        return 0;
      case 1:
        return UINT64_MAX;
      case 2:
        return any;
      case 3:
        return random() % 4 | std::uint64_t{random() % 0x8000} << 2 | any << 31;  // a state
      case 4:
        return random() % 4 | (any << 16);  // a life
      default:
        return random() % 64;
    }
  }
  [[nodiscard]] std::span<Word> words() const {
    return {reinterpret_cast<Word*>(segment_.tables().data()), segment_.tables().size() / sizeof(Word)};
  }

  TestSegment segment_;
  TestFile file_{kBlockBytes};
};

TEST_F(FileCacheHostile, WhateverTheTablesSayEveryCallReturns) {
  TestCache cache(segment_);
  std::mt19937 random(7);
  for (int round = 0; round < (soaking() ? 100'000 : 1000); ++round) {
    for (int i = 0; i < 2000; ++i) words()[random() % words().size()] = spiteful(random);
    if (round % 8 == 0) {  // the sets, of which the cache has few
      const std::size_t sets = layout::kFileSets / sizeof(Word);
      for (std::size_t i = sets; i < words().size(); ++i) words()[i] = spiteful(random);
    }
    use(*cache, random);
  }
}

TEST_F(FileCacheHostile, ASpoilerBesideItStopsNothing) {
  TestCache cache(segment_);
  Child spoiler([&] {
    std::mt19937 random(3);
    while (true) words()[random() % words().size()] = spiteful(random);
    return true;
  });
  std::mt19937 random(8);
  for (int round = 0; round < (soaking() ? 100'000 : 2000); ++round) use(*cache, random);
}

TEST_F(FileCacheHostile, ADamagedSegmentIsRefused) {
  layout::FileCacheHeader& header = segment_->header();
  const auto refused = [&] {
    Cache cache;
    const Refusal refusal = cache.attach(segment_.path());
    EXPECT_FALSE(cache.attached());
    return refusal.error;
  };
  for (const std::uint64_t sets : {0UL, 1UL, 3UL, 16UL, UINT64_MAX, std::uint64_t{1} << 63, std::uint64_t{1} << 40}) {
    const std::uint64_t right = std::exchange(header.sets, sets);
    EXPECT_EQ(refused(), EINVAL) << sets;
    header.sets = right;
  }
  header.version += 1;
  EXPECT_EQ(refused(), EINVAL);
  header.version -= 1;
  header.magic += 1;
  EXPECT_EQ(refused(), EINVAL);
  header.magic -= 1;
  header.pid_namespace += 1;
  EXPECT_EQ(refused(), EXDEV);
  header.pid_namespace -= 1;
  header.ended = 1;
  EXPECT_EQ(refused(), EAGAIN);
  header.ended = 0;
  ASSERT_EQ(::ftruncate(segment_.descriptor(), 4096), 0);
  EXPECT_EQ(refused(), EINVAL);
}

TEST_F(FileCacheHostile, AFileThatIsNotThisUsersAloneIsRefused) {
  Cache cache;
  ASSERT_EQ(::fchmod(segment_.descriptor(), 0620), 0);
  EXPECT_EQ(cache.attach(segment_.path()).error, EACCES);
  ASSERT_EQ(::fchmod(segment_.descriptor(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::fchown(segment_.descriptor(), 1234, 1234), 0);
    EXPECT_EQ(cache.attach(segment_.path()).error, EACCES);
    ASSERT_EQ(::fchown(segment_.descriptor(), 0, 0), 0);
  }
  EXPECT_EQ(cache.attach("/dev/null").error, EACCES);
  EXPECT_EQ(cache.attach("/dev/shm/wherry-files-of-nobody").error, ENOENT);
  EXPECT_EQ(cache.attach(std::string(300, 'x').c_str()).error, ENAMETOOLONG);
  test::TemporaryDirectory directory;
  const std::string link = directory.path() / "link";
  ASSERT_EQ(::symlink(segment_.path(), link.c_str()), 0);
  EXPECT_EQ(cache.attach(link.c_str()).error, EACCES);
  EXPECT_FALSE(cache.attached());
}

// Limits: at each of them, and one more.

TEST_F(FileCacheHostile, AProcessTooManyNotesItsChangesAndFillsNothing) {
  TestCache first(segment_);
  const File opened = open_usable(*first, file_);
  ASSERT_TRUE(fill_block(*first, opened, file_.descriptor(), 0));
  for (std::uint64_t number = 2; number < layout::kFileMostClients; ++number) segment_->client(number).pid = 1;
  {
    TestCache last(segment_);
    Cache over;
    EXPECT_EQ(over.attach(segment_.path()).error, EUSERS);
    ASSERT_TRUE(over.attached());
    std::array<byte, 16> got{};
    EXPECT_TRUE(over.read(opened, 0, got));
    EXPECT_FALSE(over.fill(opened, 1, Admission::first_touch));
    {
      const Change change(over, file_.key(), 0, 1);
      EXPECT_FALSE(first->read(opened, 0, got));
      EXPECT_FALSE(fill_block(*first, opened, file_.descriptor(), 0));
    }
    EXPECT_TRUE(fill_block(*first, opened, file_.descriptor(), 0));
    over.detach();
  }
}

TEST_F(FileCacheHostile, OneChangeTooManyIsNotedAllTheSame) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  for (std::size_t i = 0; i < layout::kFileMostChanges - 1; ++i) segment_->change(i).owner = 7;
  const auto fills = [&] { return fill_block(*cache, opened, file_.descriptor(), 0); };
  {
    const Change last(*cache, file_.key(), 0, 1);
    EXPECT_FALSE(fills());
    {
      const Change over(*cache, file_.key(), 0, 1);
      EXPECT_FALSE(fills());
    }
  }
  EXPECT_TRUE(fills());
  EXPECT_EQ(segment_->header().off, 0U);
}

TEST_F(FileCacheHostile, OneMarkTooManyTakesAllFilesOutUntilItEnds) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < layout::kFileMarksPerBucket; ++i) marks.push_back(cache->mark(file_.key()));
  for (const Mark mark : marks) cache->unmark(mark);
  ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  for (Mark& mark : marks) mark = cache->mark(file_.key());
  const Mark over = cache->mark(file_.key());
  for (const Mark mark : marks) cache->unmark(mark);
  EXPECT_FALSE(fill_block(*cache, opened, file_.descriptor(), 0));
  cache->unmark(over);
  EXPECT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  EXPECT_EQ(segment_->header().off, 0U);
}

TEST_F(FileCacheHostile, OneUnseenProgramTooManyTurnsTheCacheOff) {
  TestCache cache(segment_);
  for (std::size_t i = 0; i < layout::kFileMostUnseen; ++i) EXPECT_NE(cache->mark_all().entry, UINT32_MAX);
  EXPECT_EQ(segment_->header().off, 0U);
  EXPECT_EQ(cache->mark_all().entry, UINT32_MAX);
  EXPECT_EQ(segment_->header().off, 1U);
}

// Places of files, versions, epochs.

TEST_F(FileCacheHostile, MoreFilesThanPlacesTakeOverThoseNotInUse) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  for (std::uint64_t i = 0; i < 4 * layout::kFileSlots; ++i) EXPECT_FALSE(cache->open(Key(77, i)).none());
  std::array<byte, 16> got{};
  EXPECT_EQ(cache->validate(opened, file_.stamp()), Validity::gone);
  EXPECT_FALSE(cache->read(opened, 0, got));
  EXPECT_FALSE(cache->fill(opened, 0, Admission::first_touch));
  const File again = open_usable(*cache, file_);
  EXPECT_FALSE(cache->read(again, 0, got)) << "what its earlier place had is nobody's";
  EXPECT_TRUE(fill_block(*cache, again, file_.descriptor(), 0));
}

TEST_F(FileCacheHostile, APlaceInItsLastEpochIsNeverUsedAgain) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  layout::FileSlot& slot = segment_->file(opened.slot);
  slot.life = life_of(FileKind::ready, 0, layout::kFileLastEpoch - 2);
  ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  std::array<byte, 16> got{};
  EXPECT_TRUE(cache->read(opened, 0, got));
  cache->drop_all(file_.key());
  EXPECT_FALSE(cache->read(opened, 0, got));
  ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  cache->drop_all(file_.key());
  EXPECT_EQ(file_kind_of(slot.life), FileKind::retired);
  EXPECT_FALSE(cache->read(opened, 0, got));
  cache->drop_all(file_.key());
  EXPECT_EQ(file_kind_of(slot.life), FileKind::retired);
  const File again = open_usable(*cache, file_);
  EXPECT_NE(again.slot, opened.slot);
  EXPECT_TRUE(fill_block(*cache, again, file_.descriptor(), 0));
}

TEST_F(FileCacheHostile, VersionsOfABlockGoOnAfterTheLast) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  const std::uint64_t last = ~std::uint64_t{0} << layout::kFileVersionShift;
  const std::uint64_t set = segment_->set_of(opened.slot, 0);
  for (Word& state : segment_->set(set).state) state = last;
  std::array<byte, 16> got{};
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
    EXPECT_TRUE(cache->read(opened, 0, got));
    cache->drop(file_.key(), 0, 1);
    EXPECT_FALSE(cache->read(opened, 0, got));
  }
  EXPECT_EQ(broken_invariant(*segment_), "");
}

// Two processes that open a file at the same moment may give it two places.
TEST_F(FileCacheHostile, AChangeReachesEveryPlaceOfItsFile) {
  TestCache cache(segment_);
  const File one = open_usable(*cache, file_);
  layout::FileSlot& first = segment_->file(one.slot);
  first.device += 1;  // so that the second does not find it
  const File other = open_usable(*cache, file_);
  first.device -= 1;
  ASSERT_NE(one.slot, other.slot);
  std::array<byte, 16> got{};
  for (const File& file : {one, other}) ASSERT_TRUE(fill_block(*cache, file, file_.descriptor(), 0));
  {
    const Change change(*cache, file_.key(), 0, 1);
  }
  for (const File& file : {one, other}) EXPECT_FALSE(cache->read(file, 0, got));
  for (const File& file : {one, other}) ASSERT_TRUE(fill_block(*cache, file, file_.descriptor(), 0));
  cache->drop_all(file_.key());
  for (const File& file : {one, other}) EXPECT_FALSE(cache->read(file, 0, got));
}

// A place goes over to another file between a filler's first look and its second.
TEST_F(FileCacheHostile, AFillOfAPlaceThatWasGivenAwayIsOfNoFile) {
  TestCache cache(segment_);
  const File opened = open_usable(*cache, file_);
  Fill fill = cache->fill(opened, 0, Admission::first_touch);
  ASSERT_TRUE(fill);
  for (std::uint64_t i = 0; i < 4 * layout::kFileSlots; ++i) (void)cache->open(Key(77, i));
  std::ranges::fill(fill.memory(), byte{0xAA});
  (void)fill.publish(kBlockBytes);
  std::array<byte, 16> got{};
  for (std::uint64_t i = 0; i < 4 * layout::kFileSlots; ++i) {
    EXPECT_FALSE(cache->read(cache->open(Key(77, i)), 0, got));
  }
}

}  // namespace
}  // namespace wherry::file
