// SPDX-License-Identifier: Apache-2.0
// Where one process runs many tests, ctest's watchdog would let the first that hangs take all the time of the others, and
// would not name it. WHERRY_TEST_SECONDS gives each test a watchdog of its own, which prints its name and ends the process.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace wherry {
namespace {

// A timer of the process, unlike a thread, disturbs no test that forks, and a forked child does not inherit it.
class TestWatchdog final : public testing::EmptyTestEventListener {
 public:
  explicit TestWatchdog(long seconds) : seconds_(seconds) {
    struct sigaction action = {};
    action.sa_handler = expire;
    const int signal = SIGRTMAX;
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = signal;
    if (::sigaction(signal, &action, nullptr) != 0 || ::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) std::abort();
  }

  void OnTestStart(const testing::TestInfo& test) override {
    last_words() = std::string("no end of ") + test.test_suite_name() + "." + test.name() + " within its watchdog's " +
                   std::to_string(seconds_) + " s\n";
    set(seconds_);
  }

  void OnTestEnd(const testing::TestInfo&) override { set(0); }

 private:
  // Async-signal-safe: the words are there before the timer runs.
  static void expire(int) {
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

class InstallTestWatchdog final : public testing::Environment {
 public:
  void SetUp() override {
    const char* const seconds = std::getenv("WHERRY_TEST_SECONDS");
    if (seconds != nullptr) testing::UnitTest::GetInstance()->listeners().Append(new TestWatchdog(std::atol(seconds)));
  }
};

[[maybe_unused]] const auto* const install = testing::AddGlobalTestEnvironment(new InstallTestWatchdog);

}  // namespace
}  // namespace wherry
