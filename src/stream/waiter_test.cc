// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/scoped_environment.hpp"

namespace wherry::stream {
namespace {

using namespace std::chrono_literals;
using fabric::Bell;
using fabric::Wake;

/// Whether the budget was spent on polling, though nothing became ready.
bool looks(SpinBudget& budget) {
  bool looked = false;
  EXPECT_FALSE(budget.look([&] {
    looked = true;
    return false;
  }));
  return looked;
}

TEST(SpinBudget, WithoutABudgetNobodyLooks) {
  SpinBudget none(0us);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(looks(none));
}

TEST(SpinBudget, StopsLookingAsSoonAsItIsReady) {
  SpinBudget budget(1s);
  int looked = 0;
  EXPECT_TRUE(budget.look([&] { return ++looked == 100; }));
  EXPECT_EQ(looked, 100);
}

TEST(SpinBudget, LooksForTheWholeBudget) {
  SpinBudget budget(2ms);
  const auto start = SteadyClock::now();
  EXPECT_TRUE(looks(budget));
  EXPECT_GE(SteadyClock::now() - start, 2ms);
}

TEST(SpinBudget, EachLookInVainDoublesTheSleepsUntilTheNext) {
  SpinBudget budget(1us);
  for (const int pause : {1, 3, 7, 15, 31, 63, 63, 63}) {
    EXPECT_TRUE(looks(budget));
    for (int i = 0; i < pause; ++i) EXPECT_FALSE(looks(budget)) << i << " of " << pause;
  }
  EXPECT_TRUE(looks(budget));
}

TEST(SpinBudget, OneSuccessForgivesAllFailures) {
  SpinBudget budget(1us);
  EXPECT_TRUE(looks(budget));
  EXPECT_FALSE(looks(budget));
  EXPECT_TRUE(looks(budget));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(looks(budget));
  EXPECT_TRUE(budget.look([] { return true; }));
  EXPECT_TRUE(looks(budget));
  EXPECT_FALSE(looks(budget));
  EXPECT_TRUE(looks(budget)) << "the penalty starts from one again";
}

TEST(SpinBudget, TellsWhetherItCameAlmostAtOnce) {
  SpinBudget budget(1s);
  const auto look_at = [&](int success) {
    int looked = 0;
    EXPECT_TRUE(budget.look([&] { return ++looked == success; }));
    return budget.came_soon();
  };
  EXPECT_TRUE(look_at(1));
  EXPECT_TRUE(look_at(8));
  EXPECT_FALSE(look_at(9));
  EXPECT_FALSE(look_at(33)) << "the first look after a look at the clock";
  SpinBudget vain(1us);
  EXPECT_TRUE(vain.look([] { return true; }));
  EXPECT_TRUE(looks(vain));
  EXPECT_FALSE(vain.came_soon());
  EXPECT_FALSE(looks(vain));
  EXPECT_FALSE(vain.came_soon());
}

TEST(SpinBudget, TheDefaultBecomesTwiceWhatAWakeUpTakes) {
  const ScopedEnvironment spin("WHERRY_SPIN", nullptr);
  SpinBudget budget;
  EXPECT_EQ(budget.budget(), 50us);
  auto woken_after = [&, rung = std::uint64_t{0}](std::uint64_t ns) mutable {
    rung += 1'000'000'000;
    budget.learn({.ns = rung, .cpu = 0}, rung + ns, 1);
    return budget.budget();
  };
  EXPECT_EQ(woken_after(30'000), 60us);
  EXPECT_EQ(woken_after(20'000'000), 60us) << "it waited for a CPU";
  EXPECT_EQ(woken_after(-std::uint64_t{1}), 60us) << "such a time was made up";
  EXPECT_EQ(woken_after(62'000), 62us) << "slowly up: it may have waited for a CPU";
  EXPECT_EQ(woken_after(11'000), 52us) << "fast down";
  for (int i = 0; i < 100; ++i) woken_after(100);
  EXPECT_EQ(budget.budget(), 5us);
  for (int i = 0; i < 1000; ++i) woken_after(90'000);
  EXPECT_EQ(budget.budget(), 100us);
}

TEST(SpinBudget, ASettingIsKept) {
  const ScopedEnvironment spin("WHERRY_SPIN", "70");
  SpinBudget budget;
  budget.learn({.ns = 1000, .cpu = 0}, 31'000, 1);
  EXPECT_EQ(budget.budget(), 70us);
}

TEST(SpinBudget, APeerOnTheSameCpuIsNotLookedFor) {
  SpinBudget budget(1us);
  EXPECT_TRUE(looks(budget));
  EXPECT_FALSE(looks(budget));
  budget.learn({.ns = 1000, .cpu = 1}, 2000, 1);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(looks(budget));
  budget.learn({.ns = 3000, .cpu = 0}, 4000, 1);
  EXPECT_TRUE(looks(budget)) << "it has moved, and not looking was no penalty";
}

TEST(SpinBudget, ASleepThatNobodyRangTeachesNothing) {
  SpinBudget budget(1us);
  budget.learn({.ns = 1000, .cpu = 1}, 2000, 1);
  budget.learn({.ns = 1000, .cpu = 1}, 5000, 0);
  EXPECT_FALSE(looks(budget)) << "the waiter has moved, but the ring is the old one";
}

TEST(SpinBudget, ABadSettingIsRefused) {
  const ScopedEnvironment spin("WHERRY_SPIN", "fast");
  EXPECT_THROW(SpinBudget(), Error);
}

class SleepUnless : public ::testing::Test {
 protected:
  SleepUnless() {
    fabric::Fabric& fabric = fabric::find("inproc");
    const auto listener = fabric.listen(Address{});
    const auto connecting = fabric.connect(listener->local(), {.segment_bytes = 4096});
    sleeper_ = listener->try_accept({.segment_bytes = 4096});
    peer_ = connecting->try_finish();
  }

  Wake sleep(bool ready, fabric::Deadline deadline) {
    return sleep_unless(*sleeper_, Bell::data, deadline, [&] { return ready; }, [&] { ++slept_; });
  }

  std::unique_ptr<fabric::Connection> sleeper_;
  std::unique_ptr<fabric::Connection> peer_;
  int slept_ = 0;
};

TEST_F(SleepUnless, WhatIsReadyAfterTheAnnouncementIsNotSleptFor) {
  EXPECT_EQ(sleep(true, {}), Wake::rung);
  EXPECT_EQ(slept_, 0);
  EXPECT_FALSE(peer_->announce(Bell::data)) << "awake again, as the peer sees it";
}

TEST_F(SleepUnless, ADeadlineEndsItAndTheSleeperIsAwakeAgain) {
  EXPECT_EQ(sleep(false, SteadyClock::now() + 5ms), Wake::timeout);
  EXPECT_EQ(slept_, 1);
  EXPECT_FALSE(peer_->announce(Bell::data));
}

TEST_F(SleepUnless, ThePeerWakesIt) {
  std::thread waker([&] {
    while (!peer_->announce(Bell::data)) std::this_thread::yield();
  });
  EXPECT_EQ(sleep(false, {}), Wake::rung);
  waker.join();
}

TEST_F(SleepUnless, ThePeersDeathWakesIt) {
  peer_.reset();
  EXPECT_EQ(sleep(false, {}), Wake::gone);
}

}  // namespace
}  // namespace wherry::stream
