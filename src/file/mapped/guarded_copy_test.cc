// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/guarded_copy.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/barrier.hpp"
#include "file/mapped/fault_signals.hpp"
#include "tests/common/in_child.hpp"

namespace wherry::file::mapped {
namespace {

using test::in_child;

constexpr std::size_t kPage = 4096;

/// Pages followed by an inaccessible page.
class Pages {
 public:
  explicit Pages(std::size_t count) : bytes_(count * kPage) {
    begin_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(begin_ + bytes_, kPage, PROT_NONE);
  }
  ~Pages() { ::munmap(begin_, bytes_ + kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* begin() const { return begin_; }
  std::byte* end() const { return begin_ + bytes_; }

 private:
  std::size_t bytes_;
  std::byte* begin_;
};

class GuardedCopy : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
  }
};

TEST_F(GuardedCopy, EveryLengthAndAlignmentArrivesAndNothingBesideIt) {
  std::vector<std::byte> from(4000);
  for (std::size_t i = 0; i < from.size(); i++) from[i] = static_cast<std::byte>(i * 31 + i / 256);
  constexpr std::byte kUntouched{0xa5};
  for (std::size_t bytes = 0; bytes < 700; bytes += bytes < 300 ? 1 : 37) {
    for (const std::size_t shift : {0U, 1U, 7U, 31U, 32U, 33U, 63U}) {
      std::vector<std::byte> to(bytes + 200, kUntouched);
      ASSERT_TRUE(copy_or_fault(to.data() + 64 + shift, from.data() + shift * 2, bytes));
      for (std::size_t i = 0; i < to.size(); i++) {
        const bool inside = i >= 64 + shift && i < 64 + shift + bytes;
        ASSERT_EQ(to[i], inside ? from[shift * 2 + i - 64 - shift] : kUntouched) << bytes << " " << shift << " " << i;
      }
    }
  }
}

TEST_F(GuardedCopy, APageThatMayNotBeTouchedIsAResultOnEitherSide) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    const Pages pages(4);
    std::vector<std::byte> other(4 * kPage);
    for (const std::size_t bytes : {1U, 3U, 8U, 20U, 50U, 100U, 200U, 4096U, 16384U}) {
      EXPECT_TRUE(copy_or_fault(other.data(), pages.end() - bytes, bytes)) << bytes;
      EXPECT_FALSE(copy_or_fault(other.data(), pages.end() - bytes + 1, bytes)) << bytes;
      EXPECT_TRUE(copy_or_fault(pages.end() - bytes, other.data(), bytes)) << bytes;
      EXPECT_FALSE(copy_or_fault(pages.end() - bytes + 1, other.data(), bytes)) << bytes;
    }
    EXPECT_FALSE(copy_or_fault(nullptr, other.data(), 10));
    void* const none = reinterpret_cast<void*>(std::uintptr_t{1} << 63);  // NOLINT(performance-no-int-to-ptr)
    EXPECT_FALSE(copy_or_fault(none, other.data(), 1000));
  });
}

volatile sig_atomic_t handled = 0;

TEST_F(GuardedCopy, AHandlerThatInterruptsACopyMayFaultInOneItself) {
  if (WHERRY_THREAD_SANITIZER != 0) GTEST_SKIP() << "the sanitizer runs handlers where signals are blocked";
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    struct sigaction action{};
    action.sa_handler = [](int) {
      std::array<std::byte, 100> there;
      handled = handled + (copy_or_fault(there.data(), nullptr, there.size()) ? 0 : 1);
    };
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
    ::ualarm(100, 100);
    const Pages pages(256);
    std::vector<std::byte> to(256 * kPage);
    while (handled < 50) {
      ASSERT_TRUE(copy_or_fault(to.data(), pages.begin(), to.size()));
      ASSERT_FALSE(copy_or_fault(to.data(), pages.begin() + 1, to.size()));
    }
    ::ualarm(0, 0);
  });
}

}  // namespace
}  // namespace wherry::file::mapped
