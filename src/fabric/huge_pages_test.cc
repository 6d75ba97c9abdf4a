// SPDX-License-Identifier: Apache-2.0
#include "fabric/huge_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/resize.hpp"
#include "base/unique_fd.hpp"
#include "tests/common/pattern.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kBoth = PROT_READ | PROT_WRITE;

/// Two mappings of a shared memory file of a few huge pages and one small one.
class HugePages : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 3 * kHugePage + kPage;

  HugePages() : file_(::memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(resize(file_.get(), kBytes), 0);
    memory_ = {map_for_huge_pages(file_.get(), 0, kBytes, kBoth, MAP_SHARED), kBytes};
    peers_ = {map_for_huge_pages(file_.get(), 0, kBytes, kBoth, MAP_SHARED), kBytes};
  }
  ~HugePages() override {
    ::munmap(memory_.data(), memory_.size());
    ::munmap(peers_.data(), peers_.size());
  }

  UniqueFd file_;
  std::span<std::byte> memory_;
  std::span<std::byte> peers_;
};

TEST_F(HugePages, AreMappedWhereTheyCanBe) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory_.data()) % kHugePage, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(peers_.data()) % kHugePage, 0U);
  EXPECT_EQ(map_for_huge_pages(-1, 0, kBytes, kBoth, MAP_SHARED), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(HugePages, KeepWhatIsThereAlreadyAndBothSidesSeeThem) {
  const Pattern pattern{3};
  pattern.fill(memory_.first(5 * kPage), 0);
  const std::size_t done = collapse_into_huge_pages(memory_.first(2 * kHugePage));
  EXPECT_EQ(done % kHugePage, 0U);
  EXPECT_LE(done, 2 * kHugePage);
  EXPECT_TRUE(pattern.matches(peers_.first(5 * kPage), 0));
  pattern.fill(peers_, 11);
  EXPECT_TRUE(pattern.matches(memory_, 11));
}

TEST_F(HugePages, AreNotHadOfMemoryThatIsNotThere) {
  ::munmap(memory_.data() + kHugePage, kHugePage);
  EXPECT_LE(collapse_into_huge_pages(memory_.first(2 * kHugePage)), kHugePage);
  memory_[0] = std::byte{1};
  EXPECT_EQ(peers_[0], std::byte{1});
}

}  // namespace
}  // namespace wherry::fabric
