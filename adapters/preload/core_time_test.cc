// SPDX-License-Identifier: Apache-2.0
#include "core_time.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace wherry::preload {
namespace {

std::uint64_t ran_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void run_for_ms(std::uint64_t ms) {
  const std::uint64_t end = ran_ns() + ms * 1'000'000;
  while (ran_ns() < end) {
  }
}

void share_this_core() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

/// Calls `use` in a thread of its own, whose times begin at 0.
template <class Use>
void in_thread(Use use) {
  std::thread(use).join();
}

class CoreTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "the kernel does not count waits";
  }
};

TEST_F(CoreTimes, TellHowLongAThreadHasRunAndWaited) {
  in_thread([] {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    if (!CPU_ISSET(0, &before)) GTEST_SKIP() << "may not use the first core";
    share_this_core();
    std::atomic<bool> done{false};
    std::thread other([&] {
      while (!done.load(std::memory_order_relaxed)) {
      }
    });
    run_for_ms(60);
    const auto time = more_core_time();
    done.store(true);
    other.join();
    ASSERT_TRUE(time.has_value());
    EXPECT_GE(time->ran_ns, 60'000'000U);
    EXPECT_GE(time->waited_ns, 20'000'000U) << "the other thread has half of the core";
  });
}

TEST_F(CoreTimes, AreThoseSinceTheLastCall) {
  in_thread([] {
    run_for_ms(30);
    ASSERT_TRUE(more_core_time().has_value());
    const std::uint64_t before = ran_ns();
    run_for_ms(20);
    const auto time = more_core_time();
    ASSERT_TRUE(time.has_value());
    EXPECT_GE(time->ran_ns, 20'000'000U);
    EXPECT_LE(time->ran_ns, ran_ns() - before + 10'000'000U);
  });
}

TEST_F(CoreTimes, AreRare) {
  in_thread([] {
    int answers = 0;
    for (int i = 0; i < 10'000; ++i) answers += more_core_time().has_value() ? 1 : 0;
    EXPECT_GE(answers, 1);
    EXPECT_LT(answers, 5'000);
  });
}

TEST_F(CoreTimes, OfAForkedChildAreItsOwn) {
  run_for_ms(60);
  (void)more_core_time();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    run_for_ms(10);
    const auto time = more_core_time();
    ::_exit(time && time->ran_ns >= 10'000'000U && time->ran_ns <= ran_ns() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace wherry::preload
