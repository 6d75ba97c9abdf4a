// SPDX-License-Identifier: Apache-2.0
// RMA: what is written and read, and what is refused.
#include <bit>
#include <cstring>

#include "tests/conformance/window_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kBytes = 64 * kPage;
constexpr RmaOptions kComplete{.complete = true};

class WindowRma : public WindowTest {
 protected:
  std::unique_ptr<SpacePair> pair_ = spaces();
  Space& near_ = pair_->near;
  Space& far_ = pair_->far;
};

TEST_P(WindowRma, WritesAndReadsBetweenWindows) {
  CallersPages near(kBytes), far(kBytes);
  const std::uint64_t from = registered(near_, near.bytes());
  const std::uint64_t to = registered(far_, far.bytes());
  fill(near.bytes(), 1);
  ASSERT_EQ(near_.write_to(from, kBytes, to, kComplete), 0);
  EXPECT_TRUE(filled(far.bytes(), 1));
  fill(far.bytes(), 2);
  ASSERT_EQ(near_.read_from(from, kBytes, to), 0);
  EXPECT_TRUE(filled(near.bytes(), 2));
}

TEST_P(WindowRma, WritesAndReadsAnyMemoryOfTheCallers) {
  CallersPages far(kBytes);
  const std::uint64_t to = registered(far_, far.bytes());
  std::vector<std::byte> own(kBytes), back(kBytes);
  fill(own, 3);
  ASSERT_EQ(near_.write_to(own, to, kComplete), 0);
  EXPECT_TRUE(filled(far.bytes(), 3));
  ASSERT_EQ(near_.read_from(back, to), 0);
  EXPECT_TRUE(filled(back, 3));
}

TEST_P(WindowRma, TakesAnyAlignmentAndLengthAndTouchesNothingElse) {
  CallersPages near(4 * kPage), far(4 * kPage);
  const std::uint64_t from = registered(near_, near.bytes());
  const std::uint64_t to = registered(far_, far.bytes());
  fill(near.bytes(), 4);
  for (const std::size_t bytes : {1UL, 3UL, 63UL, 64UL, 65UL, 4095UL, 4096UL, 4097UL, 9000UL}) {
    for (const std::size_t at : {0UL, 1UL, 7UL, 63UL, 4095UL}) {
      for (const bool ordered : {false, true}) {
        std::memset(far.bytes().data(), 0x55, far.bytes().size());
        std::vector<std::byte> expected(far.bytes().begin(), far.bytes().end());
        const std::size_t there = (at * 13 + 5) % 3000;
        std::memcpy(expected.data() + there, near.bytes().data() + at, bytes);
        ASSERT_EQ(near_.write_to(from + at, bytes, to + there, {.complete = true, .ordered = ordered}), 0);
        ASSERT_EQ(std::memcmp(expected.data(), far.bytes().data(), expected.size()), 0) << bytes << " at " << at;
      }
    }
  }
}

TEST_P(WindowRma, MaySpanWindowsThatFollowEachOther) {
  CallersPages near(8 * kPage), first(3 * kPage), second(5 * kPage);
  const std::uint64_t from = registered(near_, near.bytes());
  const std::uint64_t to = registered(far_, first.bytes(), kReadWrite, 16 * kPage);
  registered(far_, second.bytes(), kReadWrite, 19 * kPage);
  fill(near.bytes(), 5);
  ASSERT_EQ(near_.write_to(from, 8 * kPage, to, kComplete), 0);
  EXPECT_EQ(std::memcmp(first.bytes().data(), near.bytes().data(), 3 * kPage), 0);
  EXPECT_EQ(std::memcmp(second.bytes().data(), near.bytes().data() + 3 * kPage, 5 * kPage), 0);
}

TEST_P(WindowRma, MaySpanOwnWindowsThatFollowEachOther) {
  CallersPages first(3 * kPage), second(5 * kPage), far(8 * kPage);
  const std::uint64_t to = registered(far_, far.bytes());
  registered(near_, second.bytes(), kReadWrite, 3 * kPage);
  registered(near_, first.bytes(), kReadWrite, 0);
  fill(far.bytes(), 6);
  ASSERT_EQ(near_.read_from(0, 8 * kPage, to), 0);
  EXPECT_EQ(std::memcmp(first.bytes().data(), far.bytes().data(), 3 * kPage), 0);
  EXPECT_EQ(std::memcmp(second.bytes().data(), far.bytes().data() + 3 * kPage, 5 * kPage), 0);
}

TEST_P(WindowRma, OutsideOfWindowsThereIsNothing) {
  CallersPages near(2 * kPage), far(2 * kPage);
  registered(near_, near.bytes(), kReadWrite, 0);
  registered(far_, far.bytes(), kReadWrite, 4 * kPage);
  fill(near.bytes(), 7);
  EXPECT_EQ(near_.write_to(0, kPage, 0), ENXIO);
  EXPECT_EQ(near_.write_to(0, 1, 4 * kPage - 1), ENXIO);
  EXPECT_EQ(near_.write_to(0, kPage + 1, 5 * kPage), ENXIO) << "beyond its end";
  EXPECT_EQ(near_.write_to(kPage, kPage + 1, 4 * kPage), ENXIO) << "beyond the own end";
  EXPECT_EQ(near_.write_to(2 * kPage, 1, 4 * kPage), ENXIO);
  EXPECT_EQ(near_.write_to(0, 1, UINT64_MAX), ENXIO);
  EXPECT_EQ(near_.write_to(UINT64_MAX, 2, 4 * kPage), ENXIO);
  EXPECT_EQ(near_.read_from(0, SIZE_MAX, 4 * kPage), ENXIO);
  EXPECT_EQ(near_.write_to(0, 0, 4 * kPage), EINVAL);
  EXPECT_EQ(far.bytes()[0], std::byte{0}) << "nothing was moved";
}

TEST_P(WindowRma, ProtectionIsKept) {
  CallersPages near(kPage), far(kPage);
  registered(near_, near.bytes(), kRead, 0);
  registered(near_, near.bytes(), kWrite, kPage);
  registered(far_, far.bytes(), kRead, 0);
  registered(far_, far.bytes(), kWrite, kPage);
  EXPECT_EQ(near_.write_to(0, 1, kPage), 0);
  EXPECT_EQ(near_.write_to(0, 1, 0), EPERM) << "the peer's is for reading only";
  EXPECT_EQ(near_.write_to(kPage, 1, kPage), EPERM) << "the own is for writing only";
  EXPECT_EQ(near_.read_from(kPage, 1, 0), 0);
  EXPECT_EQ(near_.read_from(kPage, 1, kPage), EPERM);
  EXPECT_EQ(near_.read_from(0, 1, 0), EPERM);
}

TEST_P(WindowRma, MemoryThatIsNotThereIsAnErrorAndNoCrash) {
  CallersPages far(4 * kPage);
  const std::uint64_t to = registered(far_, far.bytes());
  CallersPages hole(4 * kPage);
  ASSERT_EQ(::munmap(hole.bytes().data() + 2 * kPage, kPage), 0);
  EXPECT_EQ(near_.write_to(hole.bytes(), to), EFAULT);
  EXPECT_EQ(near_.read_from(hole.bytes(), to), EFAULT);
  ASSERT_EQ(::mprotect(hole.bytes().data(), kPage, PROT_READ), 0);
  EXPECT_EQ(near_.write_to(hole.bytes().first(kPage), to, kComplete), 0);
  EXPECT_EQ(near_.read_from(hole.bytes().first(kPage), to), EFAULT);
  EXPECT_EQ(near_.write_to({std::bit_cast<std::byte*>(std::uintptr_t{8}), 8}, to), EFAULT);
}

TEST_P(WindowRma, ALargeOneArrivesWhole) {
  constexpr std::size_t kLarge = std::size_t{20} << 20;
  CallersPages near(kLarge), far(kLarge);
  const std::uint64_t from = registered(near_, near.bytes());
  const std::uint64_t to = registered(far_, far.bytes());
  fill(near.bytes(), 8);
  ASSERT_EQ(near_.write_to(from, kLarge, to, kComplete), 0);
  EXPECT_TRUE(filled(far.bytes(), 8));
}

WHERRY_ON_EVERY_FABRIC(WindowRma);

}  // namespace
}  // namespace wherry::conformance
