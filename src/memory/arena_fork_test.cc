// SPDX-License-Identifier: Apache-2.0
// Forks with pages of the arena in the stack or the heap: stores of other threads are not lost.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <span>
#include <thread>

#include "base/child_process.hpp"
#include "base/unique_fd.hpp"
#include "memory/arena.hpp"
#include "memory/store_guard.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::memory {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 32;

/// Another thread counts in each page of a frame while this one forks. Returns how many increments are lost.
[[gnu::noinline]] std::uint64_t lost_by_fork() {
  alignas(kPage) std::array<std::byte, kPages * kPage> frame{};
  std::array<std::uint64_t, kPages> counts{};
  Arena::instance().expose(frame);  // exposed only for a moment: the pages stay in the arena
  std::atomic<int> phase{0};
  std::thread counting([&] {
    for (std::size_t page = 0; phase != 2; page = (page + 1) % kPages) {
      const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(&frame[page * kPage]));
      word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      ++counts[page];
      if (phase == 0) phase = 1;
    }
  });
  while (phase == 0) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  phase = 2;
  counting.join();
  ::waitpid(child, nullptr, 0);
  std::uint64_t lost = 0;
  for (std::size_t page = 0; page < kPages; ++page) {
    lost += counts[page] - *reinterpret_cast<const std::uint64_t*>(&frame[page * kPage]);
  }
  return lost;
}

/// Whether a guard holds stores into shared memory. Before Linux 5.19 it holds those into private memory only.
bool holds_shared_memory() {
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  if (::ftruncate(file.get(), kPage) != 0) return false;
  void* const start = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  const std::span page(static_cast<const std::byte*>(start), kPage);
  const StoreGuard guard;
  const bool holds = guard.hold(page) == 0;
  if (holds) guard.release(page);
  ::munmap(start, kPage);
  return holds;
}

TEST(ArenaFork, OnAStackWithRegisteredPagesLosesNoStoreOfAnotherThread) {
  if (!holds_shared_memory()) GTEST_SKIP() << "stores into shared memory cannot be made to wait here";
  const TimeLimit limit(std::chrono::seconds(2));
  for (int round = 0; round < (soaking() ? 10'000 : 100) && !limit.over(); ++round) {
    ASSERT_EQ(lost_by_fork(), 0U) << "in round " << round;
  }
}

/// Until it has its copies, the child shares the heap with its parent, and must not allocate.
TEST(ArenaFork, WithAnExposedHeapLeavesThatWhole) {
  Child process([] {
    std::array<std::unique_ptr<char[]>, 64> blocks;
    const auto allocate = [&](std::size_t seed) {
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::make_unique<char[]>((i * 797 + seed) % 30'000);
    };
    allocate(1);
    const auto start = (reinterpret_cast<std::uintptr_t>(blocks[0].get()) / kPage + 1) * kPage;
    const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0)) / kPage * kPage;
    if (start >= end || end - start > std::size_t{64} << 20) return true;  // it is elsewhere
    const auto exposed = Arena::instance().expose({std::bit_cast<std::byte*>(start), end - start});
    for (std::size_t round = 0; round < 200; ++round) {
      Child child([] { return true; });
      allocate(round * 131);
      EXPECT_EQ(child.wait(), 0);
    }
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace wherry::memory
