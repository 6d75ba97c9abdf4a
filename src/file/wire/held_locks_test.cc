// SPDX-License-Identifier: Apache-2.0
#include "file/wire/held_locks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <random>

namespace wherry::file {
namespace {

using layout::FileLock;
using layout::FileLockType;

FileLock lock_of(std::uint64_t offset, std::uint64_t length, FileLockType type) {
  return {.offset = offset, .length = length, .type = static_cast<std::uint32_t>(type), .reserved = 0};
}

TEST(HeldLocks, ALengthOfZeroReachesTheEndOfEveryFile) {
  HeldLocks held;
  held.set(lock_of(10, 0, FileLockType::read));
  EXPECT_TRUE(held.overlap(lock_of(INT64_MAX, 1, FileLockType::write)));
  EXPECT_FALSE(held.overlap(lock_of(0, 10, FileLockType::write)));
  held.set(lock_of(0, 0, FileLockType::none));
  EXPECT_FALSE(held.any());
}

TEST(HeldLocks, AnUnlockedMiddleLeavesBothEnds) {
  HeldLocks held;
  held.set(lock_of(0, 30, FileLockType::write));
  held.set(lock_of(10, 10, FileLockType::none));
  EXPECT_FALSE(held.overlap(lock_of(10, 10, FileLockType::write)));
  EXPECT_TRUE(held.overlap(lock_of(9, 1, FileLockType::write)));
  EXPECT_TRUE(held.overlap(lock_of(20, 1, FileLockType::write)));
}

TEST(HeldLocks, RangesOfOneTypeSideBySideAreOne) {
  HeldLocks held;
  for (std::uint64_t i = 0; i < 1000; ++i) held.set(lock_of(i, 1, FileLockType::read));
  EXPECT_EQ(held.count(), 1U);
  held.set(lock_of(1000, 0, FileLockType::write));
  EXPECT_EQ(held.count(), 2U);
  EXPECT_EQ(held.all().back().length, 0U);
  held.set(lock_of(0, 0, FileLockType::write));
  EXPECT_EQ(held.count(), 1U);
}

TEST(HeldLocks, AnySequenceLeavesWhatItWouldLeaveOfEachByte) {
  constexpr std::size_t kBytes = 40;
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  HeldLocks held;
  std::array<FileLockType, kBytes> locked{};
  for (int round = 0; round < 2000; ++round) {
    const std::size_t offset = random() % kBytes;
    const std::size_t length = 1 + random() % (kBytes - offset);
    const FileLock lock = lock_of(offset, length, static_cast<FileLockType>(random() % 3));
    const auto begin = locked.begin() + static_cast<std::ptrdiff_t>(offset);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    const auto type = static_cast<FileLockType>(lock.type);
    ASSERT_EQ(held.weakened_by(lock), std::any_of(begin, end, [&](FileLockType had) { return had > type; }));
    const auto conflicts = [&](FileLockType had) {
      return had == FileLockType::write || (had == FileLockType::read && type == FileLockType::write);
    };
    if (type != FileLockType::none) {
      ASSERT_EQ(held.conflicts_with(lock), std::any_of(begin, end, conflicts));
    }
    const std::size_t most = held.count_with(lock);
    held.set(lock);
    std::fill(begin, end, type);
    bool any = false;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      const bool is_locked = locked.at(i) != FileLockType::none;
      ASSERT_EQ(held.overlap(lock_of(i, 1, FileLockType::read)), is_locked) << round << ", byte " << i;
      if (is_locked && (i == 0 || locked.at(i - 1) != locked.at(i))) ++ranges;
      any = any || is_locked;
    }
    ASSERT_EQ(held.count(), ranges);
    ASSERT_LE(held.count(), most);
    ASSERT_EQ(held.all().size(), ranges);
    ASSERT_EQ(held.any(), any);
  }
}

}  // namespace
}  // namespace wherry::file
