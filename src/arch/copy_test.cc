// SPDX-License-Identifier: Apache-2.0
#include "arch/copy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "arch/cache_line.hpp"
#include "base/scoped_environment.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::arch {
namespace {

constexpr std::byte kGuard{0xEE};
constexpr std::size_t kMargin = 2 * kCacheLine;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> buffer(bytes);
  std::uint32_t state = 1;
  for (std::byte& byte : buffer) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return buffer;
}

// Buffers that begin on a cache line, so that an offset is an alignment.
struct Buffers {
  explicit Buffers(std::size_t bytes) : source_(pattern(bytes + 3 * kMargin)), destination_(source_.size()) {}

  static std::byte* aligned(std::vector<std::byte>& buffer) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    return buffer.data() + (kCacheLine - address % kCacheLine) % kCacheLine;
  }

  // Copies with these alignments. Returns whether exactly the requested bytes changed, and to the source's.
  bool copies_exactly(void (*copy)(void*, const void*, std::size_t), std::size_t to, std::size_t from,
                      std::size_t bytes) {
    std::fill(destination_.begin(), destination_.end(), kGuard);
    std::byte* destination = aligned(destination_) + to;
    const std::byte* source = aligned(source_) + from;
    copy(destination, source, bytes);
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    return std::all_of(destination_.data(), destination, is_guard) && std::equal(source, source + bytes, destination) &&
           std::all_of(destination + bytes, destination_.data() + destination_.size(), is_guard);
  }

 private:
  std::vector<std::byte> source_;
  std::vector<std::byte> destination_;
};

class CopyKernel : public ::testing::TestWithParam<StreamingKernel> {};

TEST_P(CopyKernel, CopiesEverySizeAtEveryAlignmentAndNothingElse) {
  constexpr std::size_t kSizes = 3 * 4 * kCacheLine;  // several steps of a kernel, and every tail
  Buffers buffers(kSizes);
  for (std::size_t bytes = 0; bytes <= kSizes; bytes += bytes < 2 * kCacheLine ? 1 : 7) {
    for (const std::size_t to : {0, 1, 3, 8, 15, 16, 31, 32, 33, 47, 63}) {
      for (const std::size_t from : {0, 1, 16, 33, 63}) {
        ASSERT_TRUE(buffers.copies_exactly(GetParam().copy, to, from, bytes))
            << bytes << " bytes from line + " << from << " to line + " << to;
      }
    }
  }
}

TEST_P(CopyKernel, CopiesSizesAroundPowersOfTwo) {
  Buffers buffers((1 << 20) + 1);
  for (std::size_t power = 512; power <= 1 << 20; power *= 2) {
    for (const std::size_t bytes : {power - 1, power, power + 1}) {
      ASSERT_TRUE(buffers.copies_exactly(GetParam().copy, 5, 9, bytes)) << bytes << " bytes";
    }
  }
}

TEST_P(CopyKernel, AReleaseStoreAfterTheCopyPublishesIt) {
  constexpr std::size_t kBytes = 4096;
  constexpr std::uint64_t kRounds = 2000;
  constexpr std::uint64_t kEnd = kRounds + 1;
  std::vector<std::uint64_t> source(kBytes / 8);
  std::vector<std::uint64_t> shared(kBytes / 8);
  std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint64_t> consumed{0};
  std::thread consumer([&] {
    for (std::uint64_t round = 0;;) {
      const std::uint64_t before = round;
      while ((round = published.load(std::memory_order_acquire)) == before) std::this_thread::yield();
      if (round == kEnd) return;
      const bool all = std::all_of(shared.begin(), shared.end(), [round](std::uint64_t word) { return word == round; });
      EXPECT_TRUE(all) << "in round " << round;
      consumed.store(round, std::memory_order_release);
    }
  });
  const TimeLimit limit(std::chrono::seconds(1));
  for (std::uint64_t round = 1; round <= kRounds && !limit.over(); ++round) {
    std::fill(source.begin(), source.end(), round);
    GetParam().copy(shared.data(), source.data(), kBytes);
    published.store(round, std::memory_order_release);
    while (consumed.load(std::memory_order_acquire) != round) std::this_thread::yield();
  }
  published.store(kEnd, std::memory_order_release);
  consumer.join();
}

std::vector<StreamingKernel> all_kernels() {
  std::vector<StreamingKernel> kernels{
      {"cached", copy_cached}, {"into", copy_into}, {"out_of", copy_out_of}, {"streaming", copy_streaming}};
  kernels.insert(kernels.end(), streaming_kernels().begin(), streaming_kernels().end());
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(All, CopyKernel, ::testing::ValuesIn(all_kernels()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Copy, OfNothingTouchesNoPointer) {
  copy_into(nullptr, nullptr, 0);
  copy_out_of(nullptr, nullptr, 0);
  copy_cached(nullptr, nullptr, 0);
  copy_streaming(nullptr, nullptr, 0);
}

TEST(CopyDeathTest, ThresholdComesFromTheConfiguration) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const ScopedEnvironment set("WHERRY_NONTEMPORAL", "3K");
  EXPECT_EXIT(_exit(streaming_threshold() == 3072 ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(CopyDeathTest, AnInvalidThresholdCountsAsTheDefault) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const std::size_t usual = streaming_threshold();
  const ScopedEnvironment set("WHERRY_NONTEMPORAL", "many");
  EXPECT_EXIT(_exit(streaming_threshold() == usual ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wherry::arch
