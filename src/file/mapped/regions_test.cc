// SPDX-License-Identifier: Apache-2.0
// Addresses that a program chooses for its own mappings, while files are mapped and unmapped.
#include "file/mapped/regions.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "arch/barrier.hpp"
#include "base/unique_fd.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::file::mapped {
namespace {

constexpr std::size_t kBytes = std::size_t{8} << 20;
constexpr int kMapped = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// Whether a mapping of zeros, not of a file, stays there for some microseconds.
bool stays_zero(int scratch, const void* place) {
  for (int i = 0; i < 20; ++i) {
    char byte = 1;
    if (::pwrite(scratch, place, 1, 0) != 1 || ::pread(scratch, &byte, 1, 0) != 1 || byte != 0) return false;
  }
  return true;
}

/// An unmapped place, which the kernel is likely to choose for its next mapping.
void* some_place() {
  void* const place = ::mmap(nullptr, kBytes, PROT_NONE, kMapped, -1, 0);
  EXPECT_NE(place, MAP_FAILED);
  ::munmap(place, kBytes);
  return place;
}

TEST(Regions, AMappingOfTheProgramsStaysWhileFilesAreMappedAndUnmapped) {
  if (WHERRY_THREAD_SANITIZER != 0 || WHERRY_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "sanitizers have memory there";
  const UniqueFd file(::memfd_create("regions", MFD_CLOEXEC));
  const UniqueFd scratch(::memfd_create("scratch", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  ASSERT_EQ(::pwrite(file.get(), "x", 1, 0), 1);
  void* const place = some_place();
  static std::atomic<int> revoked{0};
  const Revoke revoke = [](std::uintptr_t, std::uint32_t) { ++revoked; };
  const auto map_and_unmap = [&] {
    const Region region = map_region(RegionsLock(), file.get(), kBytes, 1, revoke);
    if (region.number != kNoRegion) unmap_region(RegionsLock(), region.number, 1);
  };
  map_and_unmap();  // before the loop: the first mapping of a process may race with an earlier call
  std::atomic<bool> over{false};
  std::thread mapper([&] {
    while (!over) map_and_unmap();
  });
  for (int i = 0; i < 5'000 || (revoked == 0 && i < 100'000); ++i) {
    {
      const PlaceTaken taken(place, kBytes, revoke);
      ASSERT_EQ(::mmap(place, kBytes, PROT_READ | PROT_WRITE, kMapped | MAP_FIXED, -1, 0), place);
    }
    ASSERT_TRUE(stays_zero(scratch.get(), place)) << "round " << i;
    ::munmap(place, kBytes);
  }
  over = true;
  mapper.join();
}

// More regions than a group has, and after some were unmapped and mapped again.
TEST(Regions, EachMappingGoesWithItsOwnAddresses) {
  const UniqueFd file(::memfd_create("regions", MFD_CLOEXEC));
  static std::vector<std::uintptr_t> revoked;
  const Revoke revoke = [](std::uintptr_t owner, std::uint32_t) { revoked.push_back(owner); };
  std::vector<Region> regions;
  const auto map = [&](std::uintptr_t owner) { return map_region(RegionsLock(), file.get(), 4096, owner, revoke); };
  for (std::uintptr_t owner = 0; owner < 200; owner++) regions.push_back(map(owner));
  ASSERT_NE(regions.back().number, kNoRegion);
  for (std::uintptr_t owner = 0; owner < 200; owner += 3) {
    unmap_region(RegionsLock(), regions[owner].number, owner);
    regions[owner] = map(owner);
  }
  for (std::uintptr_t owner = 0; owner < 200; owner++) {
    give_up_regions(&regions[owner].bytes[100], 1, revoke);
    ASSERT_EQ(revoked, std::vector{owner});
    give_up_regions(regions[owner].bytes.data(), 4096, revoke);
    ASSERT_EQ(revoked.size(), 1U) << "it is gone";
    revoked.clear();
  }
}

TEST(Regions, AHookThatTheEnginesOwnCallsMeetDoesNotWaitForItself) {
  const RegionsLock here;
  give_up_regions(nullptr, SIZE_MAX, [](std::uintptr_t, std::uint32_t) {});
  const PlaceTaken taken(nullptr, SIZE_MAX, [](std::uintptr_t, std::uint32_t) {});
}

}  // namespace
}  // namespace wherry::file::mapped
