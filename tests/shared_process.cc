// SPDX-License-Identifier: Apache-2.0
// Where one process runs many tests. ctest's watchdog would let the first that hangs take all the time of the others,
// and would not name it: WHERRY_TEST_SECONDS gives each test a watchdog of its own, which prints its name and ends the
// process. And a thread that one test leaves behind changes what the next ones check: with WHERRY_TEST_LEAVES_NO_THREAD
// such a test fails.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "arch/barrier.hpp"

namespace wherry {
namespace {

// A timer of the process, unlike a thread, disturbs no test that forks, and a forked child does not inherit it.
class TestWatchdog final : public testing::EmptyTestEventListener {
 public:
  explicit TestWatchdog(long seconds) : seconds_(seconds) {
    struct sigaction action = {};
    action.sa_handler = expire;
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMAX;
    if (::sigaction(SIGRTMAX, &action, nullptr) != 0 || ::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
      std::abort();
  }

  void OnTestStart(const testing::TestInfo& test) override {
    last_words() = std::string("no end of ") + test.test_suite_name() + "." + test.name() + " within its watchdog's " +
                   std::to_string(seconds_) + " s\n";
    set(seconds_);
  }

  void OnTestEnd(const testing::TestInfo& /*test*/) override { set(0); }

 private:
  // Async-signal-safe: the words are there before the timer runs.
  static void expire(int /*signal*/) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, last_words().data(), last_words().size());
    std::abort();
  }

  static std::string& last_words() {
    static std::string words;
    return words;
  }

  void set(long seconds) {
    itimerspec time = {};
    time.it_value.tv_sec = seconds;
    ::timer_settime(timer_, 0, &time, nullptr);
  }

  long seconds_;
  timer_t timer_ = {};
};

class NoThreadLeft final : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    // A thread that has been joined is listed for a moment longer.
    for (int looks = 0; threads() > kOwnThreads && looks < 1000; ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_LE(threads(), kOwnThreads) << "the test leaves a thread behind";
  }

 private:
  // ThreadSanitizer has one of its own.
  static constexpr std::ptrdiff_t kOwnThreads = WHERRY_THREAD_SANITIZER ? 2 : 1;

  static std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  }
};

class SharedProcess final : public testing::Environment {
 public:
  void SetUp() override {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (const char* const seconds = std::getenv("WHERRY_TEST_SECONDS"))
      listeners.Append(new TestWatchdog(std::atol(seconds)));
    if (std::getenv("WHERRY_TEST_LEAVES_NO_THREAD") != nullptr) listeners.Append(new NoThreadLeft);
  }
};

[[maybe_unused]] const auto* const shared_process = testing::AddGlobalTestEnvironment(new SharedProcess);

}  // namespace
}  // namespace wherry
