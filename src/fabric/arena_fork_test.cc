// SPDX-License-Identifier: Apache-2.0
// Forking where registered memory was: what other threads store into the stack of the thread that forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "fabric/arena.hpp"
#include "fabric/store_guard.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 32;

/// Another thread counts in each page of a frame while this one forks. Returns how many increments are lost.
[[gnu::noinline]] std::uint64_t lost_by_fork() {
  alignas(kPage) std::array<std::byte, kPages * kPage> frame{};
  std::array<std::uint64_t, kPages> counts{};
  Arena::instance().expose(frame);  // and no longer
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

TEST(ArenaFork, OnAStackWithRegisteredPagesLosesNoStoreOfAnotherThread) {
  if (!StoreGuard().works()) GTEST_SKIP() << "userfaultfd is refused here";
  const TimeLimit limit(std::chrono::seconds(2));
  for (int round = 0; round < (soaking() ? 10'000 : 100) && !limit.over(); ++round) {
    ASSERT_EQ(lost_by_fork(), 0U) << "in round " << round;
  }
}

}  // namespace
}  // namespace wherry::fabric
