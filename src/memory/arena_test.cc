// SPDX-License-Identifier: Apache-2.0
// Behaviour of the arena that the window suites do not test: places, and memory that is returned to the system.
#include "memory/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <wherry/error.hpp>

#include "memory/arena_region.hpp"
#include "memory/touched_pages.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;

std::span<std::byte> map_pages(std::size_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(start), bytes};
}

void unmap(std::span<std::byte> memory) { ::munmap(memory.data(), memory.size()); }

std::uint64_t place_of(const LocalRegion& exposed) { return exposed.pieces().front().key.place; }

std::size_t bytes_held() {
  struct stat status{};
  ::fstat(Arena::instance().view()->descriptor(), &status);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(Arena, ExposingAgainKeepsThePlace) {
  const auto memory = map_pages(8 * kPage);
  auto exposed = Arena::instance().expose(memory);
  const std::uint64_t place = place_of(*exposed);
  exposed.reset();
  EXPECT_EQ(place_of(*Arena::instance().expose(memory)), place);
  EXPECT_EQ(place_of(*Arena::instance().expose(memory.subspan(2 * kPage))), place + 2 * kPage);
  unmap(memory);
}

TEST(Arena, PlacesAreNeverUsedAgain) {
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const auto memory = map_pages(4 * kPage);
    const std::uint64_t place = place_of(*Arena::instance().expose(memory));
    EXPECT_TRUE(i == 0 || place >= last + 4 * kPage);
    last = place;
    unmap(memory);
  }
}

TEST(Arena, MemoryThatLiesTogetherStaysTogetherAndOtherMemoryLiesFarAway) {
  const auto memory = map_pages(8 * kPage), other = map_pages(kPage);
  const auto first = Arena::instance().expose(memory.first(4 * kPage));
  const auto second = Arena::instance().expose(memory.subspan(4 * kPage));
  EXPECT_EQ(place_of(*second), place_of(*first) + 4 * kPage);
  const auto third = Arena::instance().expose(other);
  EXPECT_GE(place_of(*third), place_of(*second) + (std::uint64_t{1} << 30));
  unmap(memory), unmap(other);
}

TEST(Arena, WhatTheOwnerFreedIsGivenBack) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  const std::size_t before = bytes_held();
  for (int i = 0; i < 100; ++i) {
    const auto memory = map_pages(kBytes);
    std::memset(memory.data(), 1, memory.size());
    Arena::instance().expose(memory);
    unmap(memory);
  }
  EXPECT_LE(bytes_held(), before + Arena::kMostIdle + 2 * kBytes);
}

TEST(Arena, WhatTheOwnerStillUsesIsNot) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  const auto used = map_pages(kBytes);
  std::memset(used.data(), 7, used.size());
  Arena::instance().expose(used);
  void* moved = ::mremap(used.data(), kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(kBytes).data());
  ASSERT_NE(moved, MAP_FAILED);
  for (int i = 0; i < 100; ++i) {
    const auto memory = map_pages(kBytes);
    Arena::instance().expose(memory);
    unmap(memory);
  }
  const std::span<std::byte> now(static_cast<std::byte*>(moved), kBytes);
  for (std::size_t at = 0; at < kBytes; at += kPage) ASSERT_EQ(now[at], std::byte{7}) << "at its new address too";
  unmap(now);
}

TEST(Arena, LargeMemoryKeepsItsContentWhereverItLies) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  for (const std::size_t bytes : {kHuge, 3 * kHuge - kPage, 5 * kHuge + 3 * kPage}) {
    for (const std::size_t before : {std::size_t{0}, kPage, kHuge}) {
      const auto all = map_pages(before + bytes);
      const auto memory = all.subspan(before);
      for (std::size_t at = 0; at < bytes; at += 8) std::memcpy(&memory[at], &at, sizeof at);
      const auto first = before == kHuge ? Arena::instance().expose(all.first(kPage)) : nullptr;
      const auto exposed = Arena::instance().expose(memory);
      ASSERT_EQ(exposed->pieces().size(), 1);
      const std::byte* const view = exposed->pieces().front().view;
      for (std::size_t at = 0; at < bytes; at += 8) ASSERT_EQ(std::memcmp(&memory[at], &at, sizeof at), 0) << at;
      ASSERT_EQ(std::memcmp(view, memory.data(), bytes), 0);
      memory[bytes / 2] = std::byte{0xee};
      EXPECT_EQ(view[bytes / 2], std::byte{0xee}) << "the same memory";
      unmap(all);
    }
  }
}

TEST(Arena, MemoryThatIsTouchedHereAndThereKeepsItsContent) {
  constexpr std::size_t kBytes = std::size_t{5} << 20;  // small pages, then huge pages, then small pages
  constexpr std::size_t kEach = 7;
  const auto memory = map_pages(kBytes).subspan(kPage);
  const auto byte_at = [](std::size_t at) {
    return at / kPage % kEach == 3 ? static_cast<std::byte>(at >> 12) : std::byte{0};
  };
  for (std::size_t at = 0; at < memory.size(); at += kPage) {
    if (at / kPage % kEach == 3) memory[at] = byte_at(at);
  }
  const auto exposed = Arena::instance().expose(memory);
  for (std::size_t at = 0; at < memory.size(); at += kPage) {
    EXPECT_EQ(memory[at], byte_at(at)) << at;
    EXPECT_EQ(exposed->pieces().front().view[at], byte_at(at)) << at;
  }
  unmap(memory);
}

TEST(Arena, MemoryThatNobodyTouchedTakesNothing) {
  const auto memory = map_pages(64 * kPage);
  memory[5 * kPage] = std::byte{1};
  const auto touched = TouchedPages().in(memory);
  if (touched.all()) GTEST_SKIP() << "the kernel does not tell";
  ASSERT_EQ(touched.count(), 1U);
  EXPECT_TRUE(touched.test(5));
  const std::size_t before = bytes_held();
  const auto exposed = Arena::instance().expose(memory.subspan(6 * kPage));
  EXPECT_EQ(bytes_held(), before);
  memory[7 * kPage] = std::byte{1};
  EXPECT_EQ(bytes_held(), before + kPage);
  unmap(memory);
}

TEST(Arena, LargeMemoryThatLiesBehindTheEndOfItsFileIsEfault) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kBytes / 2), 0);
  void* const start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(start, MAP_FAILED);
  const std::size_t before = bytes_held();
  try {
    Arena::instance().expose({static_cast<std::byte*>(start), kBytes});
    ADD_FAILURE() << "exposed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EFAULT);
  }
  EXPECT_EQ(bytes_held(), before) << "nothing stays";
  ::munmap(start, kBytes);
}

TEST(Arena, AForeignKeyIsNoKey) {
  const auto memory = map_pages(4 * kPage);
  auto exposed = Arena::instance().expose(memory);
  RemoteKey key = exposed->pieces().front().key;
  EXPECT_TRUE(Arena::instance().exposes(key, 4 * kPage));
  EXPECT_FALSE(Arena::instance().exposes(key, 5 * kPage));
  EXPECT_FALSE(Arena::instance().exposes({key.place, key.kind + 4}, kPage)) << "another arena's";
  EXPECT_FALSE(Arena::instance().exposes({key.place, 0}, kPage));
  EXPECT_FALSE(Arena::instance().exposes({UINT64_MAX - kPage, key.kind}, 2 * kPage));
  exposed.reset();
  EXPECT_FALSE(Arena::instance().exposes(key, kPage));
  unmap(memory);
}

TEST(Arena, WithoutMappingsMemoryIsReachedByItsDescriptor) {
  const auto memory = map_pages(4 * kPage);
  const auto exposed = Arena::instance().expose(memory);
  // No view can hold that many bytes: the address space is smaller.
  const auto& arena = Arena::instance().view();
  const std::uint64_t place = place_of(*exposed);
  ArenaRegion reached(arena, place, std::size_t{1} << 61);
  ASSERT_EQ(reached.map(), nullptr);
  const std::array<std::byte, 5> sent{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  std::array<std::byte, 5> got{};
  EXPECT_TRUE(reached.put(4094, sent));
  EXPECT_EQ(std::memcmp(memory.data() + 4094, sent.data(), sent.size()), 0);
  EXPECT_TRUE(reached.get(got, 4094));
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(reached.signal(8, 77));
  EXPECT_EQ(memory[8], std::byte{77});
  unmap(memory);
}

TEST(Arena, WhoMapsMemoryAtAPlaceOfItsOwnHasNoViewOfIt) {
  const auto memory = map_pages(4 * kPage);
  const auto exposed = Arena::instance().expose(memory);
  const auto& arena = Arena::instance().view();
  // A place of which this process has no view. It already has one of its own exposed memory.
  ArenaRegion reached(arena, place_of(*exposed) / kArenaChunk * kArenaChunk + 1000 * kArenaChunk, 4 * kPage);
  const auto views = [&arena] {
    const std::lock_guard lock(views_mutex());
    return arena->mapped().size();
  };
  const std::size_t before = views();
  const auto room = map_pages(4 * kPage);
  ASSERT_EQ(reached.map_at(0, 4 * kPage, PROT_READ | PROT_WRITE, room.data()), 0);
  EXPECT_EQ(views(), before);
  room[5] = std::byte{7};
  std::array<std::byte, 1> got{};
  EXPECT_TRUE(reached.get(got, 5));
  EXPECT_EQ(got[0], std::byte{7});
  EXPECT_EQ(views(), before + 1);
  unmap(room);
  unmap(memory);
}

TEST(Arena, OnlyASealedMemfdOfTheRightSizeIsAPeersArena) {
  const auto make = [](std::uint64_t bytes, int seals) {
    UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
  };
  constexpr int kGood = F_SEAL_SHRINK | F_SEAL_GROW;
  int error = 0;
  EXPECT_NE(view_arena(make(kArenaChunk, kGood), kArenaChunk, error), nullptr);
  for (auto* const bad :
       {+[] { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }, +[] { return UniqueFd(); }}) {
    EXPECT_EQ(view_arena(bad(), kArenaChunk, error), nullptr);
    EXPECT_EQ(error, EPROTO);
  }
  EXPECT_EQ(view_arena(make(kArenaChunk, F_SEAL_GROW), kArenaChunk, error), nullptr);
  EXPECT_EQ(view_arena(make(kArenaChunk, kGood), 2 * kArenaChunk, error), nullptr);
  EXPECT_EQ(view_arena(make(kPage, kGood), kPage, error), nullptr) << "not whole chunks";
}

/// Reading behind the end of a file moves nothing, and is no error of the kernel's.
TEST(Arena, ATransferThatMovesNothingEndsWhateverErrnoWasBefore) {
  const auto& own = Arena::instance().view();
  ArenaRegion behind(own, own->bytes(), kPage);
  std::array<std::byte, 8> into{};
  errno = EINTR;
  EXPECT_FALSE(behind.get(into, 0));
}

TEST(Arena, IsMappedOncePerProcessThatOwnsIt) {
  const auto& own = Arena::instance().view();
  int error = 0;
  const auto again = view_arena(UniqueFd(::dup(own->descriptor())), own->bytes(), error);
  EXPECT_EQ(again, own);
}

}  // namespace
}  // namespace wherry::memory
