// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <wherry/error.hpp>

#include "memory/huge_pages.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::size_t kPage = 4096;

UniqueFd memfd(std::size_t bytes, int seals) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(OwnMemory, IsZeroedSharedAndSealedAgainstChangingItsSize) {
  OwnMemory own(4 * kPage, nullptr);
  ASSERT_EQ(own.segment().size(), 4 * kPage);
  EXPECT_EQ(own.segment().front(), std::byte{0});
  EXPECT_NE(::ftruncate(own.descriptor(), kPage), 0);
  EXPECT_NE(::ftruncate(own.descriptor(), 16 * kPage), 0);
  int error = -1;
  const Mapping peer = map_peers_memory(own.descriptor(), 4 * kPage, error);
  ASSERT_EQ(error, 0);
  own.segment()[5] = std::byte{42};
  EXPECT_EQ(peer.start()[layout::kBellPageBytes + 5], std::byte{42});
}

TEST(OwnMemory, OfACompactSegmentIsOnePageWithTheBells) {
  OwnMemory own(kPage, nullptr, true);
  EXPECT_EQ(own.segment().size(), kPage - sizeof(layout::BellPage));
  EXPECT_EQ(reinterpret_cast<std::byte*>(&own.page() + 1), own.segment().data());
  int error = -1;
  EXPECT_EQ(map_peers_memory(own.descriptor(), own.segment().size(), error).start(), nullptr);
  EXPECT_EQ(error, EPROTO) << "it is no other segment of that size";
  const Mapping peer = map_peers_memory(own.descriptor(), own.segment().size(), error, true);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(peer.size(), kPage);
  own.segment()[5] = std::byte{42};
  EXPECT_EQ(peer.start()[layout::segment_place(true) + 5], std::byte{42});
}

TEST(OwnMemory, OfSeveralHugePagesIsMappedOnBothSidesWhereTheyAreInTheFile) {
  const OwnMemory own(2 * memory::kHugePage, nullptr);
  int error = -1;
  const Mapping peer = map_peers_memory(own.descriptor(), 2 * memory::kHugePage, error);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&own.page()) % memory::kHugePage, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(peer.start()) % memory::kHugePage, 0U);
}

TEST(OwnMemory, SharesTheCallersPagesInPlaceAndGivesThemBackPrivate) {
  void* memory = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* bytes = static_cast<std::byte*>(memory);
  std::memset(bytes, 7, 2 * kPage);
  int error = -1;
  Mapping peer;
  {
    OwnMemory own(2 * kPage, bytes);
    EXPECT_EQ(own.segment().data(), bytes);
    peer = map_peers_memory(own.descriptor(), 2 * kPage, error);
    ASSERT_EQ(error, 0);
    EXPECT_EQ(peer.start()[layout::kBellPageBytes + kPage], std::byte{7}) << "the content is kept";
    peer.start()[layout::kBellPageBytes + kPage] = std::byte{8};
    EXPECT_EQ(bytes[kPage], std::byte{8}) << "the peer reaches it";
  }
  EXPECT_EQ(bytes[0], std::byte{7}) << "usable, with its content, after the connection";
  peer.start()[layout::kBellPageBytes] = std::byte{9};
  EXPECT_EQ(bytes[0], std::byte{7}) << "out of the peer's reach after the connection";
  ::munmap(memory, 2 * kPage);
}

TEST(OwnMemory, OfUnreadableCallersMemoryIsRefused) {
  void* memory = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_THROW(OwnMemory(kPage, static_cast<std::byte*>(memory)), Error);
  ::munmap(memory, kPage);
}

TEST(PeersMemory, ThatCouldShrinkUnderUsIsRefused) {
  const UniqueFd fd = memfd(2 * kPage, F_SEAL_GROW);
  int error = 0;
  EXPECT_EQ(map_peers_memory(fd.get(), kPage, error).start(), nullptr);
  EXPECT_EQ(error, EPROTO);
}

TEST(PeersMemory, ThatIsSmallerOrLargerThanAnnouncedIsRefused) {
  const UniqueFd fd = memfd(2 * kPage, F_SEAL_GROW | F_SEAL_SHRINK);
  for (const std::size_t claimed : {2 * kPage, 100 * kPage}) {
    int error = 0;
    EXPECT_EQ(map_peers_memory(fd.get(), claimed, error).start(), nullptr);
    EXPECT_EQ(error, EPROTO);
  }
  int error = -1;
  EXPECT_NE(map_peers_memory(fd.get(), kPage, error).start(), nullptr);
  EXPECT_EQ(error, 0);
}

TEST(PeersMemory, ThatIsNoMemfdIsRefused) {
  const UniqueFd fd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  int error = 0;
  EXPECT_EQ(map_peers_memory(fd.get(), kPage, error).start(), nullptr);
  EXPECT_EQ(error, EPROTO);
}

}  // namespace
}  // namespace wherry::fabric::shm
