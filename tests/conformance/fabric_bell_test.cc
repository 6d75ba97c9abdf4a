// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <thread>

#include "tests/common/time_limit.hpp"
#include "tests/conformance/fabric_pair.hpp"
#include "tests/conformance/fabric_play.hpp"

namespace wherry::conformance {
namespace {

class FabricBell : public FabricTest {};

TEST_P(FabricBell, ASleeperIsWoken) {
  const Ends ends = connect_pair();
  for (const Bell bell : fabric::kBells) {
    ends.acceptor->arm(bell);
    ASSERT_TRUE(ends.connector->signal(0, 1, bell));
    EXPECT_EQ(ends.acceptor->wait(bell, in(kTimeout)), Wake::rung);
  }
}

TEST_P(FabricBell, OneWhoIsAwakeIsNotRung) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  ASSERT_TRUE(ends.connector->signal(0, 1, Bell::data));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_FALSE(readable(ends.acceptor->descriptor(Bell::data), 10ms));
  ends.acceptor->arm(Bell::data);
  ends.acceptor->disarm(Bell::data);
  ASSERT_TRUE(ends.connector->signal(0, 2, Bell::data));
  ASSERT_TRUE(ends.connector->flush({}).ok());
  EXPECT_FALSE(readable(ends.acceptor->descriptor(Bell::data), 10ms));
}

TEST_P(FabricBell, TheOtherBellStaysSilent) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  ends.acceptor->arm(Bell::data);
  ends.acceptor->arm(Bell::space);
  ASSERT_TRUE(ends.connector->signal(0, 1, Bell::space));
  EXPECT_EQ(ends.acceptor->wait(Bell::space, in(kTimeout)), Wake::rung);
  EXPECT_FALSE(readable(ends.acceptor->descriptor(Bell::data), 10ms));
}

TEST_P(FabricBell, ABellIsRungOncePerArm) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  auto& sleeper = *ends.acceptor;
  for (std::uint64_t round = 0; round < 50; ++round) {
    sleeper.arm(Bell::data);
    EXPECT_FALSE(readable(sleeper.descriptor(Bell::data), 0ms));
    for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(ends.connector->signal(0, 3 * round + i, Bell::data));
    EXPECT_TRUE(readable(sleeper.descriptor(Bell::data)));
    ASSERT_TRUE(ends.connector->flush({}).ok());
    EXPECT_TRUE(sleeper.silence(Bell::data));
    EXPECT_FALSE(sleeper.silence(Bell::data));
    EXPECT_FALSE(readable(sleeper.descriptor(Bell::data), 0ms));
  }
}

TEST_P(FabricBell, AnnounceTellsWhetherItRang) {
  if (!GetParam().maps || !GetParam().rings_exactly) GTEST_SKIP() << "no map";
  const Ends ends = connect_pair();
  EXPECT_FALSE(ends.connector->announce(Bell::data));
  for (int i = 0; i < 3; ++i) {
    ends.acceptor->arm(Bell::data);
    EXPECT_TRUE(ends.connector->announce(Bell::data));
    EXPECT_FALSE(ends.connector->announce(Bell::data));
    EXPECT_FALSE(ends.connector->announce(Bell::space));
  }
  ends.acceptor->disarm(Bell::data);
  EXPECT_FALSE(ends.connector->announce(Bell::data));
}

TEST_P(FabricBell, ADescriptorIsReadableExactlyWhileRung) {
  const Ends ends = connect_pair();
  const int descriptor = ends.acceptor->descriptor(Bell::data);
  EXPECT_EQ(descriptor, ends.acceptor->descriptor(Bell::data));
  EXPECT_NE(descriptor, ends.acceptor->descriptor(Bell::space));
  ends.acceptor->arm(Bell::data);
  ASSERT_TRUE(ends.connector->signal(0, 1, Bell::data));
  EXPECT_TRUE(readable(descriptor));
  EXPECT_TRUE(readable(descriptor));
  EXPECT_EQ(ends.acceptor->wait(Bell::data, in(kTimeout)), Wake::rung);
  EXPECT_TRUE(!GetParam().rings_exactly || !readable(descriptor, 0ms));
}

TEST_P(FabricBell, ArmingForgetsAnOldRing) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  ends.acceptor->notify_self(Bell::data);
  ends.acceptor->arm(Bell::data);
  EXPECT_FALSE(readable(ends.acceptor->descriptor(Bell::data), 0ms));
  EXPECT_EQ(ends.acceptor->wait(Bell::data, in(5ms)), Wake::timeout);
}

TEST_P(FabricBell, ADeadlineEndsASleepAndNotBefore) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  ends.acceptor->arm(Bell::data);
  const auto deadline = std::chrono::steady_clock::now() + 30ms;
  EXPECT_EQ(ends.acceptor->wait(Bell::data, deadline), Wake::timeout);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  EXPECT_EQ(ends.acceptor->wait(Bell::data, deadline), Wake::timeout) << "a deadline already passed";
  ASSERT_TRUE(ends.connector->signal(0, 1, Bell::data));
  EXPECT_EQ(ends.acceptor->wait(Bell::data, in(kTimeout)), Wake::rung) << "still armed after a timeout";
}

TEST_P(FabricBell, AnyThreadMayRingTheOwnBell) {
  const Ends ends = connect_pair();
  for (const Bell bell : fabric::kBells) {
    ends.acceptor->arm(bell);
    std::thread other([&] {
      std::this_thread::sleep_for(2ms);
      ends.acceptor->notify_self(bell);
    });
    EXPECT_EQ(ends.acceptor->wait(bell, in(kTimeout)), Wake::rung);
    other.join();
    ends.acceptor->notify_self(bell);
    EXPECT_TRUE(readable(ends.acceptor->descriptor(bell), 0ms));
  }
}

TEST_P(FabricBell, NoWakeUpIsLost) {
  const Ends ends = connect_pair();
  std::thread other([&] { PingPong::answer(*ends.acceptor, GetParam().rounds, PingPong::By::wait); });
  PingPong::serve(*ends.connector, GetParam().rounds, PingPong::By::wait);
  other.join();
}

TEST_P(FabricBell, NoWakeUpIsLostByAnEventLoop) {
  const Ends ends = connect_pair();
  std::thread other([&] { PingPong::answer(*ends.acceptor, GetParam().rounds / 2, PingPong::By::descriptor); });
  PingPong::serve(*ends.connector, GetParam().rounds / 2, PingPong::By::descriptor);
  other.join();
}

/// Lets two threads go on at the same moment, to within the time that a store takes to another core.
class Gate {
 public:
  /// False: the gate was closed before the other thread came to this round.
  bool pass(std::size_t thread, std::uint64_t round) {
    arrived_[thread].store(round, std::memory_order_release);
    for (int looks = 0; arrived_[1 - thread].load(std::memory_order_acquire) < round; ++looks) {
      if (looks > 1000) std::this_thread::yield();
    }
    return !closed_.load(std::memory_order_relaxed);
  }
  /// For both threads from the next round on. Called by one of them between rounds.
  void close() { closed_.store(true, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, 2> arrived_{};
  std::atomic<bool> closed_{false};
};

/// In steps of a nanosecond or so: shorter than a store stays in its buffer.
void wait_a_little(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// One stores and looks whether the other sleeps while the other says that it sleeps and looks whether something was
// stored: without both full fences each may miss the other's store. Needs two cores to show.
TEST_P(FabricBell, NoWakeUpIsLostWhenBothLookAtOnce) {
  const std::uint64_t rounds = 10 * GetParam().rounds;
  const TimeLimit limit(8s);
  const Ends ends = connect_pair();
  Gate gate;
  std::thread publisher([&] {
    for (std::uint64_t round = 1; round <= rounds && gate.pass(0, round); ++round) {
      wait_a_little(round % 1999);  // as long as arming takes
      publish(*ends.connector, 0, round, Bell::data);
    }
  });
  std::uint64_t round = 1;
  for (; round <= rounds && gate.pass(1, round); ++round) {
    wait_a_little(round % 89);
    EXPECT_EQ(await(*ends.acceptor, 0, round, Bell::data), Wake::rung) << "lost in round " << round;
    if (limit.over()) gate.close();
  }
  publisher.join();
  if (round <= rounds) std::printf("busy machine: %" PRIu64 " of %" PRIu64 " rounds\n", round - 1, rounds);
}

WHERRY_ON_EVERY_FABRIC(FabricBell);

}  // namespace
}  // namespace wherry::conformance
