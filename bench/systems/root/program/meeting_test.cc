// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/meeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "bench/systems/root/program/worker_group.hpp"

namespace wherry::bench::root {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(RootMeeting, ProcessesAndThreadsPassAGateWhenItIsOpenedAndNotBefore) {
  Meeting meeting;
  WorkerGroup group;
  group.start("two threads", [&meeting] {
    meeting.enter();
    const auto pass = [&meeting] {
      meeting.arrive(Step::ready);
      meeting.pass(Barrier::start);
      meeting.arrive(Step::sent);
    };
    std::thread other(pass);
    pass();
    other.join();
  });
  group.start("another", [&meeting] {
    meeting.enter();
    meeting.arrive(Step::ready);
    meeting.pass(Barrier::start);
    meeting.arrive(Step::sent);
  });
  group.wait_until([&meeting] { return meeting.arrived(Step::ready) == 3; });
  EXPECT_EQ(meeting.arrived(Step::sent), 0U);
  meeting.open(Barrier::start);
  group.wait();
  EXPECT_EQ(meeting.arrived(Step::sent), 3U);
}

TEST(RootMeeting, TheLastStampOfAllCountsAndWhatTheySentAddsUp) {
  Meeting meeting;
  EXPECT_EQ(meeting.last_stamp(), 0U);
  WorkerGroup group;
  group.start("one", [&meeting] {
    meeting.add_sent(5);
    meeting.stamp();
  });
  group.wait();
  const std::uint64_t first = meeting.last_stamp();
  EXPECT_GT(first, 0U);
  meeting.add_sent(6);
  meeting.stamp();
  EXPECT_GT(meeting.last_stamp(), first);
  EXPECT_EQ(meeting.sent_bytes(), 11U);
}

TEST(RootMeeting, AnAddressIsSeenByAllAndOneThatIsTooLongIsRefused) {
  Meeting meeting;
  WorkerGroup group;
  group.start("server", [&meeting] { meeting.post_address("127.0.0.1:2000"); });
  group.wait();
  EXPECT_EQ(meeting.address(), "127.0.0.1:2000");
  EXPECT_THROW(meeting.post_address(std::string(1000, 'x')), std::length_error);
}

TEST(RootCrew, WhoThrowsOrDiesIsNamed) {
  const auto fails = [](const std::function<void()>& body) {
    WorkerGroup group;
    group.start("worker 3", body);
    group.wait();
  };
  EXPECT_THAT([&] { fails([] { throw std::runtime_error("it broke"); }); },
              ThrowsMessage<std::runtime_error>(HasSubstr("worker 3: exit status 1")));
  EXPECT_THAT([&] { fails([] { ::kill(::getpid(), SIGKILL); }); },
              ThrowsMessage<std::runtime_error>(HasSubstr("worker 3: ended by signal 9")));
}

TEST(RootCrew, ADeathEndsAWaitThatWouldBeInVain) {
  WorkerGroup group;
  group.start("server", [] { throw std::runtime_error("it broke"); });
  EXPECT_THROW(group.wait_until([] { return false; }), std::runtime_error);
}

TEST(RootCrew, WhoEndsInOrderBeforeEverybodyIsThereHasEndedTooEarly) {
  WorkerGroup group;
  group.start("server", [] {});
  EXPECT_THAT([&] { group.wait_until([] { return false; }); },
              ThrowsMessage<std::runtime_error>(HasSubstr("server: has ended too early")));
}

TEST(RootCrew, NobodyIsLeftOver) {
  pid_t left = 0;
  {
    Meeting meeting;
    WorkerGroup group;
    left = group.start("hangs", [&meeting] {
      meeting.enter();
      meeting.pass(Barrier::end);
    });
  }
  EXPECT_NE(::kill(left, 0), 0);
}

}  // namespace
}  // namespace wherry::bench::root
