// SPDX-License-Identifier: Apache-2.0
#include "arch/shared_copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "arch/cache_line.hpp"
#include "base/config.hpp"
#include "base/scoped_environment.hpp"

namespace wherry::arch {
namespace {

constexpr std::size_t kAround = 2 * kCacheLine;  // bytes checked before and after a copy
constexpr int kGuard = 0xEE;

// Pages of memory between two that nothing may touch.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t least)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))), bytes_((least + page_ - 1) / page_ * page_) {
    void* const all = ::mmap(nullptr, bytes_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(all) + page_;
    if (::mprotect(begin_, bytes_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { ::munmap(begin_ - page_, bytes_ + 2 * page_); }

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::byte* end() const { return begin_ + bytes_; }

 private:
  std::size_t page_;
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

void fill_with_pattern(std::byte* bytes, std::byte* end) {
  std::uint32_t state = 1;
  for (; bytes != end; ++bytes) {
    state = state * 1664525 + 1013904223;
    *bytes = static_cast<std::byte>(state >> 24);
  }
}

bool is_guard(const std::byte* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](std::byte byte) { return byte == std::byte{kGuard}; });
}

struct Kernel {
  std::string name;
  CopyFunction copy;
};

class SharedCopies : public ::testing::TestWithParam<Kernel> {
 protected:
  /// Whether exactly the requested bytes change, of those that exist for `destination`.
  static bool copies_exactly(std::byte* destination, const std::byte* source, std::size_t bytes,
                             const GuardedPages& pages) {
    const auto before = std::min<std::size_t>(kAround, destination - pages.begin());
    const auto behind = std::min<std::size_t>(kAround, pages.end() - destination - bytes);
    std::memset(destination - before, kGuard, before + bytes + behind);
    GetParam().copy(destination, source, bytes);
    return is_guard(destination - before, before) && is_guard(destination + bytes, behind) &&
           std::memcmp(destination, source, bytes) == 0;
  }
};

TEST_P(SharedCopies, MovesEveryLengthUpTo300AtEveryPairOfAlignmentsAndNothingElse) {
  constexpr std::size_t kMost = 300;
  const GuardedPages from(kMost + 3 * kAround);
  const GuardedPages to(kMost + 3 * kAround);
  fill_with_pattern(from.begin(), from.end());
  for (std::size_t bytes = 0; bytes <= kMost; ++bytes) {
    for (std::size_t to_at = 0; to_at < kCacheLine; ++to_at) {
      for (std::size_t from_at = 0; from_at < kCacheLine; ++from_at) {
        ASSERT_TRUE(copies_exactly(to.begin() + kAround + to_at, from.begin() + from_at, bytes, to))
            << bytes << " bytes from line + " << from_at << " to line + " << to_at;
      }
    }
  }
}

// Lengths at which steps and ends meet: every length up to some steps, and those around powers of two.
TEST_P(SharedCopies, MovesEveryNumberOfStepsAndTheirNeighbours) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::vector<std::size_t> lengths;
  for (std::size_t bytes = 301; bytes < 1100; ++bytes) lengths.push_back(bytes);
  for (std::size_t power = 2048; power <= kMost; power *= 2) {
    for (const std::size_t bytes : {power - 1, power, power + 1, power + kCacheLine}) lengths.push_back(bytes);
  }
  const GuardedPages from(kMost + 3 * kAround);
  const GuardedPages to(kMost + 3 * kAround);
  fill_with_pattern(from.begin(), from.end());
  for (const std::size_t bytes : lengths) {
    for (const std::size_t to_at : {0, 1, 31, 32, 63}) {
      for (const std::size_t from_at : {0, 8, 33, 63}) {
        ASSERT_TRUE(copies_exactly(to.begin() + kAround + to_at, from.begin() + from_at, bytes, to))
            << bytes << " bytes from line + " << from_at << " to line + " << to_at;
      }
    }
  }
}

// One byte too many on either side ends the test with SIGSEGV.
TEST_P(SharedCopies, ReadsAndWritesNothingBeyondEitherEnd) {
  constexpr std::size_t kMost = std::size_t{64} << 10;
  const GuardedPages from(kMost);
  const GuardedPages to(kMost);
  fill_with_pattern(from.begin(), from.end());
  std::vector<std::size_t> lengths{4095, 4096, 4097, kMost - 1, kMost};
  for (std::size_t bytes = 0; bytes < 1100; ++bytes) lengths.push_back(bytes);
  for (const std::size_t bytes : lengths) {
    for (std::byte* const destination : {to.begin(), to.end() - bytes}) {
      for (const std::byte* const source : {from.begin(), from.end() - bytes}) {
        ASSERT_TRUE(copies_exactly(destination, source, bytes, to)) << bytes << " bytes";
      }
    }
  }
}

// Both directions of each kernel, and the chosen ones.
std::vector<Kernel> all_kernels() {
  std::vector<Kernel> kernels{{"chosen_into", copy_into_shared}, {"chosen_out", copy_out_of_shared}};
  for (const SharedCopy& copy : shared_copies()) {
    std::string name = copy.name;
    std::ranges::replace(name, '-', '_');
    kernels.push_back({name + "_into", copy.into});
    kernels.push_back({name + "_out", copy.out});
  }
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(All, SharedCopies, ::testing::ValuesIn(all_kernels()),
                         [](const auto& tested) { return tested.param.name; });

TEST(SharedCopy, OfNothingTouchesNoPointer) {
  for (const Kernel& kernel : all_kernels()) kernel.copy(nullptr, nullptr, 0);
}

TEST(SharedCopy, IsOneThatTheConfigurationNames) {
  for (const SharedCopy& copy : shared_copies()) {
    EXPECT_TRUE(config::option(config::Key::copy).valid_word(copy.name)) << copy.name;
  }
}

TEST(BestSharedCopy, IsMemcpyWhereNothingWasMeasured) {
  EXPECT_EQ(best_shared_copy({}), "memcpy");
  EXPECT_EQ(best_shared_copy({.amd = false, .family = 6, .avx2 = true}), "memcpy");
  EXPECT_EQ(best_shared_copy({.amd = false, .family = 26, .avx2 = true}), "memcpy");
  EXPECT_EQ(best_shared_copy({.amd = true, .family = 23, .avx2 = true}), "memcpy");
  EXPECT_EQ(best_shared_copy({.amd = true, .family = 26, .avx2 = false}), "memcpy");
}

TEST(BestSharedCopy, ReadsBackwardOnAmdAndWritesSoOnFamily25) {
  EXPECT_EQ(best_shared_copy({.amd = true, .family = 25, .avx2 = true}), "backward");
  EXPECT_EQ(best_shared_copy({.amd = true, .family = 26, .avx2 = true}), "backward-out");
}

TEST(BestSharedCopy, IsThereOnThisProcessor) {
  const std::string_view best = best_shared_copy(this_processor());
  EXPECT_TRUE(std::ranges::any_of(shared_copies(), [&](const SharedCopy& copy) { return copy.name == best; })) << best;
}

// The choice is made once per process, so each of these tests runs in a process of its own.
class ChosenCopyDeathTest : public ::testing::Test {
 protected:
  static void expect_with(const char* setting, std::string_view name) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const ScopedEnvironment set("WHERRY_COPY", setting);
    EXPECT_EXIT(_exit(shared_copy().name == name ? 0 : 1), ::testing::ExitedWithCode(0), "") << setting;
  }
};

TEST_F(ChosenCopyDeathTest, IsTheOneThatTheConfigurationNames) {
  for (const SharedCopy& copy : shared_copies()) expect_with(copy.name, copy.name);
}

TEST_F(ChosenCopyDeathTest, IsTheBestWhereTheConfigurationSaysNothingOrNonsense) {
  const std::string_view best = best_shared_copy(this_processor());
  expect_with(nullptr, best);
  expect_with("auto", best);
  expect_with("sideways", best);
}

TEST_F(ChosenCopyDeathTest, CopiesFromTheFirstCallOn) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto copies = [] {
    std::array<std::byte, 4096> source{};
    std::array<std::byte, 4096> destination{};
    fill_with_pattern(source.data(), source.data() + source.size());
    copy_into_shared(destination.data(), source.data(), source.size());
    const bool into = source == destination;
    destination.fill({});
    copy_out_of_shared(destination.data(), source.data(), source.size());
    return into && source == destination;
  };
  EXPECT_EXIT(_exit(copies() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wherry::arch
