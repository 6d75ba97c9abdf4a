// SPDX-License-Identifier: Apache-2.0
#include "file/client/held_locks.hpp"

#include <gtest/gtest.h>

#include <array>
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

TEST(HeldLocks, AnySequenceLeavesWhatItWouldLeaveOfEachByte) {
  constexpr std::size_t kBytes = 40;
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  HeldLocks held;
  std::array<bool, kBytes> locked{};
  for (int round = 0; round < 2000; ++round) {
    const std::size_t offset = random() % kBytes;
    const std::size_t length = 1 + random() % (kBytes - offset);
    const bool locks = random() % 2 == 0;
    held.set(lock_of(offset, length, locks ? FileLockType::write : FileLockType::none));
    for (std::size_t i = offset; i < offset + length; ++i) locked.at(i) = locks;
    bool any = false;
    for (std::size_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(held.overlap(lock_of(i, 1, FileLockType::read)), locked.at(i)) << round << ", byte " << i;
      any = any || locked.at(i);
    }
    ASSERT_EQ(held.any(), any);
  }
}

}  // namespace
}  // namespace wherry::file
