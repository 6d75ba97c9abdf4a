// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/process_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "base/child_process.hpp"

namespace wherry::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::chrono::seconds kLong{600};

int sleep_for_ever() {
  while (true) ::pause();
}

TEST(ProcessGroup, SaysNothingWhenAllEndWell) {
  ProcessGroup group;
  group.start("one", [] { return 0; });
  group.start("two", [] { return 0; });
  EXPECT_EQ(group.wait(kLong), "");
}

TEST(ProcessGroup, SaysWhoFailedAndEndsTheOthersAtOnce) {
  ProcessGroup group;
  group.start("patient", sleep_for_ever);
  group.start("broken", [] { return 3; });
  EXPECT_EQ(group.wait(kLong), "broken: exit status 3");
}

TEST(ProcessGroup, SaysWhichSignalEndedSomebody) {
  ProcessGroup group;
  group.start("victim", [] { return ::raise(SIGKILL); });
  EXPECT_THAT(group.wait(kLong), StartsWith("victim: ended by signal 9"));
}

TEST(ProcessGroup, EndsWhoIsNotDoneInTime) {
  ProcessGroup group;
  group.start("patient", sleep_for_ever);
  EXPECT_THAT(group.wait(std::chrono::milliseconds(10)), HasSubstr("not done"));
}

TEST(ProcessGroup, LeavesNothingBehindThatAMemberStarted) {
  const SharedValue<std::atomic<pid_t>> grandchild;
  ProcessGroup group;
  group.start("parent", [&] {
    const pid_t pid = ::fork();
    if (pid == 0) sleep_for_ever();
    *grandchild = pid;
    return 0;
  });
  EXPECT_EQ(group.wait(kLong), "");
  // The new parent reaps the grandchild. If it is never killed, the watchdog ends the test.
  while (::kill(*grandchild, 0) == 0) {
    std::ifstream status("/proc/" + std::to_string(*grandchild) + "/stat");
    std::string pid, name, state;
    if (status >> pid >> name >> state && state == "Z") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ProcessGroup, EndsItsMembersWhenItIsGivenUp) {
  const SharedValue<std::atomic<pid_t>> member;
  {
    ProcessGroup group;
    group.start("patient", [&] {
      *member = ::getpid();
      return sleep_for_ever();
    });
    while (*member == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NE(::kill(*member, 0), 0);
}

}  // namespace
}  // namespace wherry::bench
