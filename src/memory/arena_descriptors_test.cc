// SPDX-License-Identifier: Apache-2.0
// Exposing memory when the process has no free descriptor. Each of these tests runs in a process of its own.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <wherry/error.hpp>

#include "base/child_process.hpp"
#include "memory/arena.hpp"
#include "memory/store_guard.hpp"
#include "tests/common/no_descriptors.hpp"
#include "tests/common/seccomp.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;

class ArenaWithoutDescriptors : public ::testing::Test {
  void SetUp() override {
    if (!NoDescriptors::kPossible) GTEST_SKIP() << "the sanitizer needs some";
  }
};

std::span<std::byte> filled_pages(std::size_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(start, 7, bytes);
  return {static_cast<std::byte*>(start), bytes};
}

std::ptrdiff_t untouched(std::span<const std::byte> memory) { return std::ranges::count(memory, std::byte{7}); }

/// Exposes memory. Returns 0 or an errno value.
int error_of_exposing(std::span<std::byte> memory) {
  try {
    Arena::instance().expose(memory);
  } catch (const Error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(ArenaThatCannotBeMade, SaysWhatTheKernelSays) {
  Child refused([] { return !refuse({SYS_ftruncate}) || error_of_exposing(filled_pages(kPage)) == EPERM; });
  EXPECT_EQ(refused.wait(), 0);
  Child limited([] {
    const rlimit small{.rlim_cur = kPage, .rlim_max = kPage};
    ::setrlimit(RLIMIT_FSIZE, &small);
    return error_of_exposing(filled_pages(kPage)) == EFBIG;
  });
  EXPECT_EQ(limited.wait(), 0);
}

TEST_F(ArenaWithoutDescriptors, LeavesMemoryThatIsUsedOnAfterItWasExposed) {
  Child process([] {
    const auto memory = filled_pages(2 * Arena::kMostIdle);
    auto exposed = Arena::instance().expose(memory);
    const NoDescriptors none;
    exposed.reset();
    EXPECT_EQ(untouched(memory), std::ssize(memory));
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ArenaWithoutDescriptors, AForkedChildHasMemoryOfItsOwn) {
  Child process([] {
    const auto memory = filled_pages(4 * kPage);
    const auto exposed = Arena::instance().expose(memory);
    const NoDescriptors none;
    Child child([&] {
      std::memset(memory.data(), 8, memory.size());
      return true;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(untouched(memory), std::ssize(memory));
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ArenaWithoutDescriptors, WhatCannotBeKnownOfAPageIsAnErrorAndNotForgotten) {
  Child process([] {
    const auto memory = filled_pages(3 * kPage);
    EXPECT_EQ(error_of_exposing(memory.last(kPage)), 0);
    // The first page is now a mapping of its own.
    EXPECT_EQ(::madvise(memory.data(), kPage, MADV_DONTFORK), 0);
    const NoDescriptors none;
    EXPECT_EQ(error_of_exposing(memory.first(kPage)), EMFILE);
    EXPECT_EQ(untouched(memory), std::ssize(memory));
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ArenaWithoutDescriptors, MemoryThatCannotBeGuardedIsNotExposed) {
  Child process([] {
    if (!StoreGuard().works()) return true;  // memory is exposed without a guard
    const auto memory = filled_pages(8 * kPage);
    EXPECT_EQ(error_of_exposing(memory.last(4 * kPage)), 0);
    {
      const NoDescriptors none;
      EXPECT_EQ(error_of_exposing(memory.first(4 * kPage)), EMFILE);
    }
    EXPECT_EQ(error_of_exposing(memory.first(4 * kPage)), 0);
    EXPECT_EQ(untouched(memory), std::ssize(memory));
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace wherry::memory
