// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/sample_memory.hpp"

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

TEST(RootSampleMemory, ProcessesAndThreadsPassABarrierWhenItIsOpenedAndNotBefore) {
  SampleMemory shared;
  WorkerGroup group;
  group.start("two threads", [&shared] {
    shared.enter();
    const auto pass = [&shared] {
      shared.arrive(Step::ready);
      shared.pass(Barrier::start);
      shared.arrive(Step::sent);
    };
    std::thread other(pass);
    pass();
    other.join();
  });
  group.start("another", [&shared] {
    shared.enter();
    shared.arrive(Step::ready);
    shared.pass(Barrier::start);
    shared.arrive(Step::sent);
  });
  group.wait_until([&shared] { return shared.arrived(Step::ready) == 3; });
  EXPECT_EQ(shared.arrived(Step::sent), 0U);
  shared.open(Barrier::start);
  group.wait();
  EXPECT_EQ(shared.arrived(Step::sent), 3U);
}

TEST(RootSampleMemory, TheLastStampOfAllCountsAndWhatTheySentAddsUp) {
  SampleMemory shared;
  EXPECT_EQ(shared.last_stamp(), 0U);
  WorkerGroup group;
  group.start("one", [&shared] {
    shared.add_sent(5);
    shared.stamp();
  });
  group.wait();
  const std::uint64_t first = shared.last_stamp();
  EXPECT_GT(first, 0U);
  shared.add_sent(6);
  shared.stamp();
  EXPECT_GT(shared.last_stamp(), first);
  EXPECT_EQ(shared.sent_bytes(), 11U);
}

TEST(RootSampleMemory, AnAddressIsSeenByAllAndOneThatIsTooLongIsRefused) {
  SampleMemory shared;
  WorkerGroup group;
  group.start("server", [&shared] { shared.post_address("127.0.0.1:2000"); });
  group.wait();
  EXPECT_EQ(shared.address(), "127.0.0.1:2000");
  EXPECT_THROW(shared.post_address(std::string(1000, 'x')), std::length_error);
}

TEST(RootWorkerGroup, AWorkerThatThrowsOrDiesIsNamed) {
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

TEST(RootWorkerGroup, ADeathEndsAWaitThatWouldBeInVain) {
  WorkerGroup group;
  group.start("server", [] { throw std::runtime_error("it broke"); });
  EXPECT_THROW(group.wait_until([] { return false; }), std::runtime_error);
}

TEST(RootWorkerGroup, AWorkerThatEndsInOrderBeforeAllAreThereHasEndedTooEarly) {
  WorkerGroup group;
  group.start("server", [] {});
  EXPECT_THAT([&] { group.wait_until([] { return false; }); },
              ThrowsMessage<std::runtime_error>(HasSubstr("server: has ended too early")));
}

TEST(RootWorkerGroup, NoneIsLeftOver) {
  pid_t left = 0;
  {
    SampleMemory shared;
    WorkerGroup group;
    left = group.start("hangs", [&shared] {
      shared.enter();
      shared.pass(Barrier::end);
    });
  }
  EXPECT_NE(::kill(left, 0), 0);
}

}  // namespace
}  // namespace wherry::bench::root
