// SPDX-License-Identifier: Apache-2.0
// Addresses that a program names for a mapping of its own, beside files that are mapped and unmapped.
#include "file/mapped/regions.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/unique_fd.hpp"

namespace wherry::file::mapped {
namespace {

constexpr std::size_t kBytes = std::size_t{8} << 20;
constexpr int kMapped = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

bool is_there(void* place, std::size_t bytes) { return ::msync(place, bytes, MS_ASYNC) == 0; }

/// Unmapped again: a mapping of the kernel's choice is likely to come to lie there.
void* some_place() {
  void* const place = ::mmap(nullptr, kBytes, PROT_NONE, kMapped, -1, 0);
  EXPECT_NE(place, MAP_FAILED);
  ::munmap(place, kBytes);
  return place;
}

TEST(Regions, AMappingOfTheProgramsStaysWhileFilesAreMappedAndUnmapped) {
  const UniqueFd file(::memfd_create("regions", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  void* const place = some_place();
  static std::atomic<int> revoked{0};
  const Revoke revoke = [](std::uintptr_t, std::uint32_t) { ++revoked; };
  const auto map_and_unmap = [&] {
    const Region region = map_region(RegionsLock(), file.get(), kBytes, 1, revoke);
    if (region.number != kNoRegion) unmap_region(RegionsLock(), region.number, 1);
  };
  map_and_unmap();  // the first one of a process may be raced by a call that has begun before
  std::atomic<bool> over{false};
  std::thread mapper([&] {
    while (!over) map_and_unmap();
  });
  for (int i = 0; i < 20'000 || (revoked == 0 && i < 2'000'000); ++i) {
    {
      const PlaceTaken taken(place, kBytes, revoke);
      ASSERT_EQ(::mmap(place, kBytes, PROT_READ | PROT_WRITE, kMapped | MAP_FIXED, -1, 0), place);
    }
    ASSERT_TRUE(is_there(place, kBytes)) << "round " << i;
    ::munmap(place, kBytes);
  }
  over = true;
  mapper.join();
}

TEST(Regions, AHookThatTheEnginesOwnCallsMeetDoesNotWaitForItself) {
  const RegionsLock here;
  give_up_regions(nullptr, SIZE_MAX, [](std::uintptr_t, std::uint32_t) {});
  const PlaceTaken taken(nullptr, SIZE_MAX, [](std::uintptr_t, std::uint32_t) {});
}

}  // namespace
}  // namespace wherry::file::mapped
