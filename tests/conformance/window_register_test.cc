// SPDX-License-Identifier: Apache-2.0
// Registering: which memory, at which offsets, and what becomes of it.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.hpp"
#include "tests/common/pages_with_a_hole.hpp"
#include "tests/conformance/window_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr RmaOptions kComplete{.complete = true};

class WindowRegister : public WindowTest {
 protected:
  /// Writes a pattern to a window of the far side.
  void write(std::uint64_t to, std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> own(bytes);
    fill(own, seed);
    EXPECT_EQ(near_.write_to(own, to, kComplete), 0);
  }
  /// Whether the far side's window holds a pattern.
  bool holds(std::uint64_t from, std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> own(bytes);
    EXPECT_EQ(near_.read_from(own, from), 0);
    return filled(own, seed);
  }

  std::unique_ptr<SpacePair> pair_ = spaces();
  Space& near_ = pair_->near;
  Space& far_ = pair_->far;
};

TEST_P(WindowRegister, KeepsTheContentAndTheMemoryGoesOnBeingTheOwners) {
  CallersPages pages(8 * kPage);
  fill(pages.bytes(), 1);
  const std::uint64_t at = registered(far_, pages.bytes());
  EXPECT_TRUE(filled(pages.bytes(), 1));
  EXPECT_TRUE(holds(at, 8 * kPage, 1));
  fill(pages.bytes(), 2);
  EXPECT_TRUE(holds(at, 8 * kPage, 2));
  EXPECT_EQ(far_.unregister(at, 8 * kPage), 0);
  EXPECT_TRUE(filled(pages.bytes(), 2));
  fill(pages.bytes(), 3);
  EXPECT_TRUE(filled(pages.bytes(), 3));
}

TEST_P(WindowRegister, TakesHeapStackAndStaticMemory) {
  alignas(kPage) static std::array<std::byte, 2 * kPage> kept;
  alignas(kPage) std::array<std::byte, 2 * kPage> local{};
  void* heap = nullptr;
  ASSERT_EQ(::posix_memalign(&heap, kPage, 2 * kPage), 0);
  for (std::span<std::byte> memory : {std::span<std::byte>(kept), std::span<std::byte>(local),
                                      std::span<std::byte>(static_cast<std::byte*>(heap), 2 * kPage)}) {
    fill(memory, 1);
    const std::uint64_t at = registered(far_, memory);
    EXPECT_TRUE(holds(at, memory.size(), 1));
    write(at, memory.size(), 2);
    EXPECT_TRUE(filled(memory, 2));
    EXPECT_EQ(far_.unregister(at, memory.size()), 0);
  }
  std::free(heap);
}

TEST_P(WindowRegister, TheSameMemoryInManyWindowsIsTheSame) {
  CallersPages pages(8 * kPage);
  const std::uint64_t whole = registered(far_, pages.bytes());
  const std::uint64_t again = registered(far_, pages.bytes());
  const std::uint64_t part = registered(far_, pages.bytes().subspan(2 * kPage, 3 * kPage));
  EXPECT_NE(whole, again);
  write(whole, 8 * kPage, 4);
  EXPECT_TRUE(filled(pages.bytes(), 4));
  EXPECT_TRUE(holds(again, 8 * kPage, 4));
  write(part, 3 * kPage, 5);
  EXPECT_TRUE(filled(pages.bytes().subspan(2 * kPage, 3 * kPage), 5));
  EXPECT_EQ(far_.unregister(whole, 8 * kPage), 0);
  write(again, 8 * kPage, 6);
  EXPECT_TRUE(filled(pages.bytes(), 6));
}

TEST_P(WindowRegister, TheSameMemoryMayBeInWindowsOfSeveralConnections) {
  const auto other = spaces();
  CallersPages pages(8 * kPage);
  const std::uint64_t here = registered(far_, pages.bytes());
  const std::uint64_t there = registered(other->far, pages.bytes());
  write(here, 8 * kPage, 7);
  std::vector<std::byte> own(8 * kPage);
  ASSERT_EQ(other->near.read_from(own, there), 0);
  EXPECT_TRUE(filled(own, 7));
  far_.close();
  fill(own, 8);
  ASSERT_EQ(other->near.write_to(own, there, kComplete), 0);
  EXPECT_TRUE(filled(pages.bytes(), 8));
}

TEST_P(WindowRegister, WindowsThatPartlyOverlapInMemoryShareWhatTheyHaveInCommon) {
  CallersPages pages(8 * kPage);
  const std::uint64_t front = registered(far_, pages.bytes().first(5 * kPage));
  const std::uint64_t back = registered(far_, pages.bytes().subspan(3 * kPage));
  write(front, 5 * kPage, 1);
  EXPECT_TRUE(filled(pages.bytes().first(5 * kPage), 1));
  write(back, 5 * kPage, 2);
  EXPECT_TRUE(filled(pages.bytes().subspan(3 * kPage), 2));
  std::vector<std::byte> own(2 * kPage);
  ASSERT_EQ(near_.read_from(own, front + 3 * kPage), 0);
  EXPECT_EQ(std::memcmp(own.data(), pages.bytes().data() + 3 * kPage, own.size()), 0);
}

TEST_P(WindowRegister, FreeBeforeUnregisterIsSafe) {
  auto pages = std::make_unique<CallersPages>(8 * kPage);
  fill(pages->bytes(), 1);
  const std::uint64_t at = registered(far_, pages->bytes());
  void* const was = pages->bytes().data();
  pages.reset();
  EXPECT_TRUE(holds(at, 8 * kPage, 1));
  // Something else at the same address is not the window's.
  void* other = ::mmap(was, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(other, was);
  write(at, 8 * kPage, 2);
  EXPECT_TRUE(holds(at, 8 * kPage, 2));
  EXPECT_EQ(*static_cast<std::byte*>(other), std::byte{0});
  // Local RMA of the owner's reaches it too.
  CallersPages near(8 * kPage);
  const std::uint64_t to = registered(near_, near.bytes());
  EXPECT_EQ(far_.write_to(at, 8 * kPage, to, kComplete), 0);
  EXPECT_TRUE(filled(near.bytes(), 2));
  EXPECT_EQ(far_.unregister(at, 8 * kPage), 0);
  ::munmap(other, 8 * kPage);
}

TEST_P(WindowRegister, MemoryMayGrowByReallocOnceItIsUnregistered) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;  // malloc gives it a mapping of its own
  CallersPages neighbour(4 * kPage);
  auto* block = static_cast<std::byte*>(std::malloc(kBytes));
  const std::size_t lead = (0 - reinterpret_cast<std::uintptr_t>(block)) % kPage;
  const std::span<std::byte> pages(block + lead, kBytes / 2);
  fill(pages, 1);
  const std::uint64_t at = registered(far_, pages);
  const std::uint64_t beside = registered(far_, neighbour.bytes());
  EXPECT_EQ(far_.unregister(at, kBytes / 2), 0);
  auto* const grown = static_cast<std::byte*>(std::realloc(block, 8 * kBytes));
  ASSERT_NE(grown, nullptr);
  EXPECT_TRUE(filled({grown + lead, kBytes / 2}, 1));
  std::memset(grown + kBytes, 0x77, 7 * kBytes);
  EXPECT_FALSE(holds(beside, 4 * kPage, 9));
  EXPECT_EQ(neighbour.bytes()[0], std::byte{0});
  std::free(grown);
}

TEST_P(WindowRegister, WhatIsNotMappedCannotBeRegistered) {
  const PagesWithAHole pages;
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, kReadWrite).error, EFAULT);
  EXPECT_EQ(far_.register_memory(pages.hole(), {}, kReadWrite).error, EFAULT);
  ASSERT_EQ(::mprotect(pages.bytes().data(), kPage, PROT_NONE), 0);
  EXPECT_EQ(far_.register_memory(pages.bytes().first(kPage), {}, kReadWrite).error, EFAULT);
}

TEST_P(WindowRegister, OnlyWholePagesAndKnownProtections) {
  CallersPages pages(4 * kPage);
  EXPECT_EQ(far_.register_memory(pages.bytes().first(100), {}, kReadWrite).error, EINVAL);
  EXPECT_EQ(far_.register_memory(pages.bytes().subspan(64, kPage), {}, kReadWrite).error, EINVAL);
  EXPECT_EQ(far_.register_memory({}, {}, kReadWrite).error, EINVAL);
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, kReadWrite | PROT_EXEC).error, EINVAL);
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, PROT_NONE).error, EINVAL);
  EXPECT_EQ(far_.register_memory(pages.bytes(), 100, kReadWrite).error, EINVAL);
  EXPECT_EQ(far_.register_memory(pages.bytes(), std::uint64_t{1} << 63, kReadWrite).error, EINVAL);
}

TEST_P(WindowRegister, OffsetsAreTheCallersOrChosen) {
  CallersPages pages(4 * kPage);
  EXPECT_EQ(registered(far_, pages.bytes(), kReadWrite, 0), 0U) << "every multiple of the page size";
  EXPECT_EQ(registered(far_, pages.bytes(), kReadWrite, 0x80000), 0x80000U);
  const auto own = reinterpret_cast<std::uint64_t>(pages.bytes().data());
  EXPECT_EQ(registered(far_, pages.bytes(), kReadWrite, own), own);
  const std::uint64_t chosen = registered(far_, pages.bytes());
  EXPECT_NE(chosen, 0U);
  EXPECT_GE(chosen, window::kFirstChosenOffset);
  EXPECT_EQ(far_.register_memory(pages.bytes(), window::kFirstChosenOffset - kPage, kReadWrite).error, EADDRINUSE);
  EXPECT_EQ(far_.register_memory(pages.bytes(), window::kFirstChosenOffset, kReadWrite).error, EADDRINUSE);
}

TEST_P(WindowRegister, WindowsDoNotOverlap) {
  CallersPages pages(4 * kPage);
  registered(far_, pages.bytes(), kReadWrite, 8 * kPage);
  for (const std::uint64_t at : {5, 8, 11}) {
    EXPECT_EQ(far_.register_memory(pages.bytes(), at * kPage, kReadWrite).error, EADDRINUSE) << at;
  }
  EXPECT_EQ(far_.register_memory(pages.bytes(), 4 * kPage, kReadWrite).error, 0);
  EXPECT_EQ(far_.register_memory(pages.bytes(), 12 * kPage, kReadWrite).error, 0);
}

TEST_P(WindowRegister, UnregisteringClosesTheWindowsWithinARange) {
  CallersPages pages(4 * kPage);
  for (const std::uint64_t at : {0, 4, 8, 20}) registered(far_, pages.bytes(), kReadWrite, at * kPage);
  EXPECT_EQ(far_.unregister(0, 0), EINVAL);
  EXPECT_EQ(far_.unregister(0, 100), EINVAL);
  EXPECT_EQ(far_.unregister(0, 6 * kPage), EINVAL) << "cuts the second";
  EXPECT_EQ(far_.unregister(2 * kPage, 6 * kPage), EINVAL) << "cuts the first";
  EXPECT_EQ(far_.unregister(5 * kPage, kPage), EINVAL) << "lies within one";
  EXPECT_EQ(far_.unregister(12 * kPage, 8 * kPage), ENXIO);
  std::vector<std::byte> own(kPage);
  EXPECT_EQ(near_.read_from(own, 4 * kPage), 0) << "none of these did anything";
  EXPECT_EQ(far_.unregister(0, 12 * kPage), 0);
  for (const std::uint64_t at : {0, 4, 8}) EXPECT_EQ(near_.read_from(own, at * kPage), ENXIO) << at;
  EXPECT_EQ(near_.read_from(own, 20 * kPage), 0);
  EXPECT_EQ(far_.register_memory(pages.bytes(), 4 * kPage, kReadWrite).error, 0) << "the offsets are free again";
  EXPECT_EQ(near_.read_from(own, 4 * kPage), 0);
}

TEST_P(WindowRegister, MemoryThatCannotBeMovedIsReachedWhereItIs) {
  if (!GetParam().reaches_all) GTEST_SKIP() << "this fabric registers memory";
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4 * kPage), 0);
  void* start = ::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(start, MAP_FAILED);
  const std::span<std::byte> shared(static_cast<std::byte*>(start), 4 * kPage);
  fill(shared, 1);
  const std::uint64_t at = registered(far_, shared);
  EXPECT_TRUE(holds(at, 4 * kPage, 1));
  write(at, 4 * kPage, 2);
  EXPECT_TRUE(filled(shared, 2));
  CallersPages near(4 * kPage);
  const std::uint64_t to = registered(near_, near.bytes());
  EXPECT_EQ(far_.write_to(at, 4 * kPage, to, kComplete), 0);
  EXPECT_TRUE(filled(near.bytes(), 2));
  ::munmap(start, 4 * kPage);
  std::vector<std::byte> own(kPage);
  EXPECT_EQ(near_.read_from(own, at), EFAULT) << "its owner freed it";
  EXPECT_EQ(far_.write_to(at, kPage, to), EFAULT);
}

TEST_P(WindowRegister, AsManyWindowsAsTheLimitSays) {
  CallersPages pages(kPage);
  for (std::size_t i = 0; i < layout::kMostWindows; ++i) {
    ASSERT_EQ(far_.register_memory(pages.bytes(), 2 * i * kPage, kReadWrite).error, 0) << i;
  }
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, kReadWrite).error, ENOMEM);
  write(2 * (layout::kMostWindows - 1) * kPage, kPage, 3);
  EXPECT_TRUE(filled(pages.bytes(), 3));
  EXPECT_EQ(far_.unregister(20 * kPage, kPage), 0);
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, kReadWrite).error, 0);
}

TEST_P(WindowRegister, AfterTheOtherSideClosedNothingGoes) {
  CallersPages pages(kPage);
  const std::uint64_t at = registered(far_, pages.bytes());
  std::vector<std::byte> own(kPage);
  EXPECT_EQ(near_.read_from(own, at), 0);
  far_.close();
  EXPECT_EQ(near_.read_from(own, at), ECONNRESET);
  EXPECT_EQ(near_.write_to(own, at), ECONNRESET);
  EXPECT_EQ(near_.register_memory(pages.bytes(), {}, kReadWrite).error, ECONNRESET);
  EXPECT_EQ(far_.read_from(own, 0), ECONNRESET);
  EXPECT_EQ(near_.unregister(0, kPage), ENXIO) << "the own windows are still there to be unregistered";
}

WHERRY_ON_EVERY_FABRIC(WindowRegister);

TEST(Window, NeedsAConnectionThatExposes) {
  auto& tested = fabric::find("inproc");
  const Offer offer{.segment_bytes = kWindowOffer.segment_bytes};
  const auto listener = tested.listen(Address{});
  const auto connecting = tested.connect(listener->local(), offer);
  const auto acceptor = accept(*listener, offer);
  const auto connector = finish(*connecting);
  Space space(*connector, kSpacePlace);
  CallersPages pages(kPage);
  EXPECT_EQ(space.register_memory(pages.bytes(), {}, kReadWrite).error, ENOTSUP);
}

}  // namespace
}  // namespace wherry::conformance
