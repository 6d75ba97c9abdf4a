// SPDX-License-Identifier: Apache-2.0
// Two cards of one kernel, and what each learns of the other's changes.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "file/cache.hpp"
#include "file/revocations_file.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::file {
namespace {

using std::byte;

std::string path_beside(const TestSegment& segment) {
  std::array<char, kPathBytes> path{};
  EXPECT_TRUE(revocations_path(segment.path(), path));
  return path.data();
}

class Revocations : public ::testing::Test {
 protected:
  Revocations() { revocations_.emplace(here_.path()); }
  ~Revocations() override {
    EXPECT_EQ(broken_invariant(*here_), "");
    EXPECT_EQ(broken_invariant(*there_), "");
  }

  std::optional<RevocationsFile> revocations_;  // goes after the segments
  TestSegment here_;
  TestSegment there_;
  TestFile file_{10 * kBlockBytes};
};

/// Whether the cache has that byte, and it is the file's.
bool has(Cache& cache, const TestFile& file, std::uint64_t offset) {
  byte got{};
  if (!cache.read(cache.open(file.key()), offset, {&got, 1})) return false;
  EXPECT_EQ(got, file.content()[offset]);
  return true;
}

TEST_F(Revocations, WhatAnotherCardChangedIsReadAtOnce) {
  TestCache ours(here_);
  TestCache theirs(there_);
  const File opened = open_usable(*theirs, file_);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(fill_block(*theirs, opened, file_.descriptor(), 0));
    EXPECT_TRUE(has(*theirs, file_, 0));
    {
      const Change change(*ours, file_.key(), 0, 1);
      file_.write(0, 1, 0x40 + i);
    }
    EXPECT_FALSE(has(*theirs, file_, 0));
  }
  const Glimpse glimpse = theirs->glimpse(opened, 0, 1);
  EXPECT_TRUE(glimpse.bytes.empty());
}

TEST_F(Revocations, ACardsOwnChangesLeaveTheRestOfTheFileInItsCache) {
  TestCache ours(here_);
  const File opened = open_usable(*ours, file_);
  ASSERT_TRUE(fill_block(*ours, opened, file_.descriptor(), 5));
  for (int i = 0; i < 3; ++i) {
    const Change change(*ours, file_.key(), 0, 1);
    file_.write(0, 1, i);
  }
  EXPECT_TRUE(has(*ours, file_, 5 * kBlockBytes));
}

TEST_F(Revocations, AChangeAfterAnotherCardsDoesNotHideIt) {
  TestCache ours(here_);
  TestCache theirs(there_);
  const File opened = open_usable(*ours, file_);
  ASSERT_TRUE(fill_block(*ours, opened, file_.descriptor(), 5));
  {
    const Change change(*theirs, file_.key(), 5 * kBlockBytes, 1);
    file_.write(5 * kBlockBytes, 1, 0x77);
  }
  {
    const Change change(*ours, file_.key(), 0, 1);
  }
  EXPECT_FALSE(has(*ours, file_, 5 * kBlockBytes));
}

TEST_F(Revocations, NoReadIsOlderThanTheLastChangeOfEitherCard) {
  TestCache caches[2]{TestCache(here_), TestCache(there_)};
  std::atomic<std::uint64_t> written{0};  // every value up to it is in the file
  std::atomic<bool> over{false};
  const auto write = [&](Cache& cache, std::uint64_t value) {
    const Change change(cache, file_.key(), 0, sizeof value);
    ASSERT_EQ(::pwrite(file_.descriptor(), &value, sizeof value, 0), static_cast<ssize_t>(sizeof value));
  };
  std::uint64_t hits = 0;
  write(*caches[0], 0);
  // Once: what follows must not depend on stamps.
  const File opened[2]{open_usable(*caches[0], file_), open_usable(*caches[1], file_)};
  std::thread writer([&] {
    for (std::uint64_t value = 1; !over; ++value) {
      write(*caches[value / 16 % 2], value);
      written.store(value);
      for (int i = 0; i < 200 && !over; ++i) std::this_thread::yield();
    }
  });
  const TimeLimit limit(std::chrono::seconds(2));
  for (int round = 0; round < 100'000 && !limit.over(); ++round) {
    Cache& cache = *caches[round % 2];
    const std::uint64_t least = written.load();
    std::uint64_t got = UINT64_MAX;
    if (cache.read(opened[round % 2], 0, std::as_writable_bytes(std::span(&got, 1)))) {
      ASSERT_GE(got, least);
      ++hits;
    } else {
      fill_block(cache, opened[round % 2], file_.descriptor(), 0);
    }
  }
  over = true;
  writer.join();
  EXPECT_GT(hits, 0U);
}

TEST_F(Revocations, WithoutTheFileACardGoesOn) {
  const TestSegment alone;
  std::filesystem::remove(path_beside(alone));
  TestCache cache(alone);
  const File opened = open_usable(*cache, file_);
  ASSERT_TRUE(fill_block(*cache, opened, file_.descriptor(), 0));
  EXPECT_TRUE(has(*cache, file_, 0));
  {
    const Change change(*cache, file_.key(), 0, 1);
  }
  EXPECT_FALSE(has(*cache, file_, 0));
}

TEST_F(Revocations, AFileThatIsNoneIsNotUsed) {
  const std::string path = path_beside(here_);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, sizeof(layout::FileRevocations)}) {
    std::filesystem::remove(path);
    std::ofstream(path) << std::string(bytes, 'x');
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(map_revocations(file.get()), nullptr) << bytes;
  }
  std::filesystem::remove(path);
}

TEST(RevocationsFile, IsThereAsLongAsACardOrASegment) {
  std::string path;
  {
    const TestSegment segment;
    path = path_beside(segment);
    {
      const RevocationsFile one(segment.path());
      {
        const RevocationsFile other(segment.path());
      }
      EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_TRUE(std::filesystem::exists(path)) << "processes may use the segment";
    const RevocationsFile next(segment.path());
    std::filesystem::remove(segment.path());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace wherry::file
