// SPDX-License-Identifier: Apache-2.0
#include "program_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace wherry::preload {
namespace {

constexpr std::size_t kPage = 4096;

/// Two pages that can be read, and one that cannot.
class ProgramMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const pages = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    pages_ = static_cast<char*>(pages);
    std::memset(pages_, 'x', 2 * kPage);
    ASSERT_EQ(mprotect(end(), kPage, PROT_NONE), 0);
  }
  void TearDown() override { munmap(pages_, 3 * kPage); }

  [[nodiscard]] char* end() const { return pages_ + 2 * kPage; }

  char* pages_ = nullptr;
};

TEST_F(ProgramMemoryTest, WhatEndsWithThePageCanBeRead) {
  EXPECT_TRUE(can_read(pages_, 2 * kPage));
  EXPECT_TRUE(can_read(end() - 1, 1));
  EXPECT_TRUE(can_read(end(), 0));
}

TEST_F(ProgramMemoryTest, OneByteBeyondItCannot) {
  EXPECT_FALSE(can_read(pages_, 2 * kPage + 1));
  EXPECT_FALSE(can_read(end() - 1, 2));
  EXPECT_FALSE(can_read(end(), 1));
}

TEST_F(ProgramMemoryTest, NeitherCanWhatWrapsAroundNorTheLowestPage) {
  EXPECT_FALSE(can_read(pages_, SIZE_MAX));
  EXPECT_FALSE(can_read(nullptr, 1));
  EXPECT_FALSE(can_read(reinterpret_cast<const void*>(std::uintptr_t{8}), 1));  // NOLINT(performance-no-int-to-ptr)
}

TEST_F(ProgramMemoryTest, AStringHasALengthIfItsEndCanBeReached) {
  ProgramMemory memory;
  EXPECT_EQ(memory.length_of("abc"), 3U);
  EXPECT_EQ(memory.length_of(end() - 3), ProgramMemory::kUnreadable);
  EXPECT_EQ(memory.length_of(pages_), ProgramMemory::kUnreadable);
  end()[-1] = '\0';
  EXPECT_EQ(memory.length_of(pages_), 2 * kPage - 1);
  EXPECT_EQ(memory.length_of(nullptr), ProgramMemory::kUnreadable);
}

TEST_F(ProgramMemoryTest, AskingKeepsErrno) {
  errno = E2BIG;
  EXPECT_FALSE(can_read(end(), 1));
  EXPECT_TRUE(can_read(pages_, 1));
  EXPECT_EQ(errno, E2BIG);
}

}  // namespace
}  // namespace wherry::preload
