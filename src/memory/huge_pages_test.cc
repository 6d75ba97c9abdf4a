// SPDX-License-Identifier: Apache-2.0
// Tests that need huge pages are skipped if the kernel gives none.
#include "memory/huge_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "base/resize.hpp"
#include "base/unique_fd.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/slow_call.hpp"
#include "tests/conformance/child_process.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kBoth = PROT_READ | PROT_WRITE;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which old headers do not know

/// Two mappings of a shared memory file of a few huge pages and one small one.
struct TwoMappings {
  static constexpr std::size_t kBytes = 3 * kHugePage + kPage;

  TwoMappings() : file(::memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(resize(file.get(), kBytes), 0);
    memory = {map_for_huge_pages(file.get(), 0, kBytes, kBoth, MAP_SHARED), kBytes};
    peers = {map_for_huge_pages(file.get(), 0, kBytes, kBoth, MAP_SHARED), kBytes};
  }
  TwoMappings(const TwoMappings&) = delete;
  TwoMappings& operator=(const TwoMappings&) = delete;
  ~TwoMappings() {
    ::munmap(memory.data(), memory.size());
    ::munmap(peers.data(), peers.size());
  }

  UniqueFd file;
  std::span<std::byte> memory;
  std::span<std::byte> peers;
};

/// Returns why this process gets no huge pages; empty: it gets them. Tries it without the code under test, and with as
/// much memory.
std::string why_none() {
  if (!huge_pages_are_tried()) return "one took too long, and so none are tried any more";
  const TwoMappings other;
  for (std::size_t at = 0; at < TwoMappings::kBytes; at += kHugePage) other.memory[at] = std::byte{1};
  if (::madvise(other.memory.data(), 3 * kHugePage, kCollapse) == 0) return {};
  return std::string("the kernel gives none: ") + std::strerror(errno);
}

class HugePages : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = TwoMappings::kBytes;

  TwoMappings both_;
  std::span<std::byte>& memory_ = both_.memory;
  std::span<std::byte>& peers_ = both_.peers;
};

TEST_F(HugePages, AreMappedWhereTheyCanBe) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory_.data()) % kHugePage, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(peers_.data()) % kHugePage, 0U);
  EXPECT_EQ(map_for_huge_pages(-1, 0, kBytes, kBoth, MAP_SHARED), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(HugePages, KeepWhatIsThereAlreadyAndBothSidesSeeThem) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  const Pattern pattern{3};
  pattern.fill(memory_.first(5 * kPage), 0);
  const std::size_t done = collapse_into_huge_pages(memory_.first(2 * kHugePage));
  // On a busy machine the first may take too long, so that no others are tried.
  EXPECT_TRUE(done == 2 * kHugePage || (done == kHugePage && !huge_pages_are_tried())) << done;
  EXPECT_TRUE(pattern.matches(peers_.first(5 * kPage), 0));
  pattern.fill(peers_, 11);
  EXPECT_TRUE(pattern.matches(memory_, 11));
}

TEST_F(HugePages, AreNotHadOfMemoryThatIsNotThere) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  ::munmap(memory_.data() + kHugePage, kHugePage);
  EXPECT_EQ(collapse_into_huge_pages(memory_.first(2 * kHugePage)), kHugePage);
  memory_[0] = std::byte{1};
  EXPECT_EQ(peers_[0], std::byte{1});
}

TEST_F(HugePages, AreNotTriedAgainAfterOneThatTookLongWithoutUsingTheProcessor) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  conformance::ChildProcess child([&] {
    const SlowAdvice slow(kCollapse, std::chrono::milliseconds{30});
    ASSERT_TRUE(slow.begun());
    EXPECT_EQ(collapse_into_huge_pages(memory_.first(3 * kHugePage)), kHugePage);
    EXPECT_FALSE(huge_pages_are_tried());
    EXPECT_EQ(collapse_into_huge_pages(memory_.subspan(kHugePage, kHugePage)), 0U);
    EXPECT_EQ(slow.calls(), 1);
  });
  EXPECT_EQ(child.exit_status(), 0);
}

}  // namespace
}  // namespace wherry::memory
