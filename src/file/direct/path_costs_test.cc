// SPDX-License-Identifier: Apache-2.0
#include "file/direct/path_costs.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::file {
namespace {

using Kind = PathCosts::Kind;
using Transfer = PathCosts::Transfer;
using Way = PathCosts::Way;

struct Machine {
  std::uint64_t host;
  std::uint64_t kernel;
  [[nodiscard]] std::uint64_t time(Way way) const { return way == Way::host ? host : kernel; }
};

struct Course {
  int by_host = 0;
  int explored = 0;
  std::uint64_t time = 0;
};

Course run(PathCosts& costs, const Machine& machine, Kind kind, std::uint64_t bytes, int calls) {
  Course course;
  for (int i = 0; i < calls; ++i) {
    const PathCosts::Transfer transfer{.kind = kind, .bytes = bytes};
    const PathCosts::Choice choice = costs.choose(transfer);
    const std::uint64_t took = machine.time(choice.way);
    costs.note(transfer, choice, took);
    course.by_host += choice.way == Way::host ? 1 : 0;
    course.explored += choice.explores ? 1 : 0;
    course.time += took;
  }
  return course;
}

TEST(CostsOfPaths, ChooseWhatTakesLessTimeWhateverWasExpected) {
  for (const Kind kind : {Kind::hit, Kind::miss, Kind::write}) {
    for (const std::uint64_t bytes : {std::uint64_t{65536}, std::uint64_t{1} << 20, std::uint64_t{1} << 26}) {
      const Machine fast_host{.host = bytes / 8, .kernel = bytes / 4};
      PathCosts costs;
      run(costs, fast_host, kind, bytes, 5000);
      EXPECT_GE(run(costs, fast_host, kind, bytes, 1000).by_host, 980);
      const Machine fast_kernel{.host = bytes / 4, .kernel = bytes / 8};
      PathCosts others;
      run(others, fast_kernel, kind, bytes, 5000);
      EXPECT_LE(run(others, fast_kernel, kind, bytes, 1000).by_host, 20);
    }
  }
}

TEST(CostsOfPaths, FollowAMachineThatChanges) {
  PathCosts costs;
  run(costs, {.host = 100'000, .kernel = 150'000}, Kind::miss, 1 << 20, 1000);
  run(costs, {.host = 100'000, .kernel = 50'000}, Kind::miss, 1 << 20, 5000);
  EXPECT_LE(run(costs, {.host = 100'000, .kernel = 50'000}, Kind::miss, 1 << 20, 1000).by_host, 10);
}

TEST(CostsOfPaths, ExploreWithOneCallOfAHundredAtMost) {
  PathCosts costs;
  const Course course = run(costs, {.host = 100'000, .kernel = 101'000}, Kind::write, 1 << 20, 10'000);
  EXPECT_GT(course.explored, 0);
  EXPECT_LE(course.explored, 100);
}

TEST(CostsOfPaths, ExploreForOneHundredthOfTheTimeAtMost) {
  PathCosts costs;
  const Machine machine{.host = 100'000, .kernel = 5'000'000};
  const Course course = run(costs, machine, Kind::miss, 1 << 20, 100'000);
  EXPECT_LE(static_cast<double>(course.time), 1.02 * 100'000 * static_cast<double>(machine.host));
}

TEST(CostsOfPaths, CountEachTransferOfAnAttempt) {
  constexpr PathCosts::Attempt kAttempt{.calls = 16, .switching_ns = 200'000};
  constexpr Transfer kWrite{.kind = Kind::write, .bytes = 1 << 16};
  for (const Machine machine :
       {Machine{.host = 20'000, .kernel = 21'000}, Machine{.host = 20'000, .kernel = 2'000'000}}) {
    PathCosts costs;
    PathCosts::Choice choice{};
    std::uint64_t left = 0;
    Course course;
    for (int calls = 1; calls <= 100'000; ++calls) {
      if (left == 0) {
        choice = costs.choose(kWrite, kAttempt);
        left = choice.explores ? kAttempt.calls : 1;
      }
      --left;
      costs.note(kWrite, choice, machine.time(choice.way));
      course.time += machine.time(choice.way);
      course.explored += choice.explores ? 1 : 0;
      ASSERT_TRUE(left != 0 || course.explored * 100 <= calls);
    }
    EXPECT_GT(course.explored, 0);
    EXPECT_EQ(course.explored % 16, 0);
    EXPECT_LE(static_cast<double>(course.time), 1.02 * 100'000 * static_cast<double>(machine.host));
  }
}

TEST(CostsOfPaths, ExploreLessAfterTransfersThatHadToGoTheSlowerWay) {
  PathCosts costs;
  const Transfer transfer{.kind = Kind::write, .bytes = 1 << 20};
  for (int i = 0; i < 8; ++i) {
    const PathCosts::Choice choice = costs.force(transfer, Way::kernel);
    EXPECT_EQ(choice.way, Way::kernel);
    EXPECT_TRUE(choice.explores);
    costs.note(transfer, choice, 110'000);
  }
  const Machine machine{.host = 100'000, .kernel = 110'000};
  EXPECT_EQ(run(costs, machine, Kind::write, 1 << 20, 890).explored, 0);
  EXPECT_GT(run(costs, machine, Kind::write, 1 << 20, 1000).explored, 0);
}

TEST(CostsOfPaths, DoNotCountTransfersThatGoTheFasterWayInAnyCase) {
  PathCosts costs;
  const Transfer transfer{.kind = Kind::write, .bytes = 1 << 20};
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(costs.force(transfer, Way::host).explores);
  const Machine machine{.host = 100'000, .kernel = 101'000};
  EXPECT_GT(run(costs, machine, Kind::write, 1 << 20, 700).explored, 0);
}

TEST(CostsOfPaths, OfOneSizeAndKindSayNothingOfOthers) {
  PathCosts costs;
  run(costs, {.host = 90'000'000, .kernel = 1000}, Kind::miss, 1 << 16, 2000);
  const PathCosts fresh;
  EXPECT_EQ(costs.estimate({.kind = Kind::miss, .bytes = 1 << 24}, Way::host),
            fresh.estimate({.kind = Kind::miss, .bytes = 1 << 24}, Way::host));
  EXPECT_EQ(costs.estimate({.kind = Kind::hit, .bytes = 1 << 16}, Way::host),
            fresh.estimate({.kind = Kind::hit, .bytes = 1 << 16}, Way::host));
}

TEST(CostsOfPaths, AreNotMovedFarByOneCallThatHadNoCore) {
  PathCosts costs;
  run(costs, {.host = 100'000, .kernel = 200'000}, Kind::miss, 1 << 20, 1000);
  costs.note({.kind = Kind::miss, .bytes = 1 << 20}, {.way = Way::host, .explores = false}, 1'000'000'000);
  EXPECT_LT(costs.estimate({.kind = Kind::miss, .bytes = 1 << 20}, Way::host), 150'000U);
}

TEST(CostsOfPaths, AreNotMovedFarByManyCallsThatHadNoCore) {
  PathCosts costs;
  const Transfer miss{.kind = Kind::miss, .bytes = 1 << 20};
  run(costs, {.host = 100'000, .kernel = 200'000}, Kind::miss, 1 << 20, 1000);
  for (int i = 0; i < 1000; ++i)
    costs.note(miss, {.way = Way::host, .explores = false}, i % 3 == 0 ? 4'000'000 : 100'000);
  EXPECT_LT(costs.estimate(miss, Way::host), 200'000U);
}

constexpr Transfer kMiss{.kind = Kind::miss, .bytes = 1 << 20};
constexpr Transfer kMissInOrder{.kind = Kind::miss, .bytes = 1 << 20, .in_order = true};

void note(PathCosts& costs, const Transfer& transfer, Way way, std::uint64_t nanoseconds) {
  costs.note(transfer, {.way = way, .explores = false}, nanoseconds);
}

TEST(CostsOfPaths, AreTheMeanOfTheFirstTransfers) {
  PathCosts costs;
  note(costs, kMiss, Way::host, 300'000);
  for (int i = 0; i < 7; ++i) note(costs, kMiss, Way::host, 100'000);
  EXPECT_NEAR(static_cast<double>(costs.estimate(kMiss, Way::host)), 125'000, 1000);
}

TEST(CostsOfPaths, AreNotThoseOfTransfersThatTouchNewMemory) {
  PathCosts costs;
  const std::uint64_t before = costs.estimate(kMiss, Way::host);
  costs.note(kMiss, {.way = Way::host, .explores = false}, 2 * before, false);
  EXPECT_EQ(costs.estimate(kMiss, Way::host), before);
}

TEST(CostsOfPaths, AreKeptByAForkedChild) {
  PathCosts costs;
  for (int i = 0; i < 8; ++i) note(costs, kMiss, Way::host, 100'000);
  costs.forget_after_fork();
  note(costs, kMiss, Way::host, 300'000);
  EXPECT_LT(costs.estimate(kMiss, Way::host), 150'000U);
}

TEST(CostsOfPaths, AreCountedApartByOrder) {
  PathCosts costs;
  for (int i = 0; i < 100; ++i) {
    note(costs, kMiss, Way::host, 100'000);
    note(costs, kMiss, Way::kernel, 900'000);
    note(costs, kMissInOrder, Way::host, 100'000);
    note(costs, kMissInOrder, Way::kernel, 50'000);
  }
  EXPECT_EQ(costs.faster(kMiss), Way::host);
  EXPECT_EQ(costs.faster(kMissInOrder), Way::kernel);
}

TEST(CostsOfPaths, OfAClassThatWasNotMeasuredAreThoseOfTheNearest) {
  PathCosts costs;
  note(costs, kMiss, Way::host, 123'000);
  Transfer crowded = kMissInOrder;
  crowded.crowded = true;
  EXPECT_EQ(costs.estimate(kMissInOrder, Way::host), 123'000U);
  EXPECT_EQ(costs.estimate(crowded, Way::host), 123'000U);
  note(costs, kMissInOrder, Way::host, 99'000);
  EXPECT_EQ(costs.estimate(crowded, Way::host), 99'000U);
  EXPECT_EQ(costs.estimate(kMiss, Way::host), 123'000U);
}

constexpr std::uint64_t kMs = 1'000'000;

constexpr Transfer on_crowded_cores(Transfer transfer) {
  transfer.crowded = true;
  return transfer;
}

TEST(CostsOfPaths, TellCrowdedCoresByThreadsThatWaitForOne) {
  PathCosts costs;
  EXPECT_FALSE(costs.is_crowded());
  costs.note_core(20 * kMs, kMs);
  EXPECT_FALSE(costs.is_crowded());
  for (int i = 0; i < 30; ++i) costs.note_core(5 * kMs, 15 * kMs);
  EXPECT_TRUE(costs.is_crowded());
  for (int i = 0; i < 30; ++i) costs.note_core(5 * kMs, 0);
  EXPECT_FALSE(costs.is_crowded());
}

void share_server(PathCosts& costs) {
  for (int i = 0; i < 30; ++i) costs.note_server(true);
}

TEST(CostsOfPaths, OfABusyServerAreExpectedToBeLongByBothWays) {
  for (const Kind kind : {Kind::miss, Kind::write}) {
    PathCosts costs;
    share_server(costs);
    const Transfer transfer{.kind = kind, .bytes = 1 << 18};
    const std::uint64_t by_host = costs.estimate(transfer, Way::host);
    const std::uint64_t by_kernel = costs.estimate(transfer, Way::kernel);
    for (int i = 0; i < 50; ++i) note(costs, transfer, Way::host, 20 * by_host);
    EXPECT_NEAR(static_cast<double>(costs.estimate(transfer, Way::kernel)), 20.0 * static_cast<double>(by_kernel),
                static_cast<double>(by_kernel));
    EXPECT_EQ(costs.faster(transfer), Way::host);
    note(costs, transfer, Way::kernel, by_kernel);
    EXPECT_EQ(costs.faster(transfer), Way::kernel) << "what was measured counts";
  }
}

TEST(CostsOfPaths, OnCrowdedCoresAreExpectedToBeLonger) {
  PathCosts costs;
  const std::uint64_t by_kernel = costs.estimate(kMiss, Way::kernel);
  costs.note_core(kMs, 3 * kMs);
  EXPECT_EQ(costs.estimate(on_crowded_cores(kMiss), Way::kernel), 4 * by_kernel);
  EXPECT_EQ(costs.estimate(kMiss, Way::kernel), by_kernel);
}

TEST(CostsOfPaths, OfWritesThroughTheMountOnCrowdedCoresAreOnlyAPart) {
  PathCosts costs;
  const Transfer write{.kind = Kind::write, .bytes = 1 << 18, .in_order = true};
  for (const Transfer& each : {write, on_crowded_cores(write)}) {
    for (int i = 0; i < 100; ++i) note(costs, each, Way::host, 150'000);
    for (int i = 0; i < 100; ++i) note(costs, each, Way::kernel, 100'000);
  }
  EXPECT_EQ(costs.faster(write), Way::kernel);
  EXPECT_EQ(costs.faster(on_crowded_cores(write)), Way::host);
}

TEST(CostsOfPaths, OfABusyServerAreMeasuredSoonHoweverLongTheyAreExpectedToBe) {
  PathCosts costs;
  share_server(costs);
  const Transfer transfer{.kind = Kind::write, .bytes = 1 << 16};
  bool explored = false;
  for (int calls = 0; calls < 1000 && !explored; ++calls) {
    const PathCosts::Choice choice = costs.choose(transfer, {.calls = 8, .switching_ns = 200'000});
    explored = choice.explores;
    costs.note(transfer, choice, 5 * kMs);
  }
  EXPECT_TRUE(explored);
}

TEST(CostsOfPaths, OfPagesInMemoryWaitOnlyForTheThreadsOwnCore) {
  PathCosts costs;
  share_server(costs);
  const Transfer hit = on_crowded_cores({.kind = Kind::hit, .bytes = 1 << 20});
  const std::uint64_t by_kernel = costs.estimate(hit, Way::kernel);
  costs.note_core(kMs, 3 * kMs);
  for (int i = 0; i < 50; ++i) note(costs, hit, Way::host, 20 * by_kernel);
  EXPECT_EQ(costs.estimate(hit, Way::kernel), 4 * by_kernel);
}

TEST(CostsOfPaths, OfAServerThatIsFarAreNotExpectedOfTheMount) {
  PathCosts costs;
  const Transfer transfer{.kind = Kind::write, .bytes = 1 << 16};
  const std::uint64_t by_kernel = costs.estimate(transfer, Way::kernel);
  for (int i = 0; i < 50; ++i) {
    costs.note_core(kMs, kMs / 10);  // it sleeps while the server answers
    note(costs, transfer, Way::host, 10 * by_kernel);
  }
  EXPECT_FALSE(costs.is_crowded());
  EXPECT_EQ(costs.estimate(transfer, Way::kernel), by_kernel);
  EXPECT_EQ(costs.faster(transfer), Way::kernel);
}

TEST(CostsOfPaths, OfOneWayOnFreeCoresAreComparableWithThoseOfTheOtherOnCrowdedOnes) {
  PathCosts costs;
  const Transfer crowded = on_crowded_cores(kMiss);
  note(costs, kMiss, Way::host, 50'000);
  note(costs, kMiss, Way::kernel, 100'000);
  for (int i = 0; i < 50; ++i) note(costs, crowded, Way::host, 500'000);
  EXPECT_NEAR(static_cast<double>(costs.estimate(crowded, Way::kernel)), 1'000'000, 10'000);
  EXPECT_EQ(costs.faster(crowded), Way::host);

  PathCosts others;
  for (int i = 0; i < 50; ++i) note(others, crowded, Way::host, 500'000);
  for (int i = 0; i < 50; ++i) note(others, crowded, Way::kernel, 900'000);
  note(others, kMiss, Way::host, 50'000);
  EXPECT_NEAR(static_cast<double>(others.estimate(kMiss, Way::kernel)), 90'000, 1000);
}

TEST(CostsOfPaths, ThatAreShownAreThoseOfEachClassOnceThereAreSome) {
  std::vector<layout::TransferClass> shown(layout::kTransferClasses);
  PathCosts costs;
  note(costs, kMiss, Way::host, 123'000);
  costs.show_in(shown.data());
  note(costs, kMissInOrder, Way::kernel, 77'000);
  costs.show_in(nullptr);
  note(costs, kMissInOrder, Way::kernel, 77'000);
  std::uint64_t calls = 0;
  for (std::size_t place = 0; place < shown.size(); ++place) {
    calls += shown[place].host.calls + shown[place].kernel.calls;
    const layout::TransferTraits traits = layout::transfer_traits(place);
    if (shown[place].host.calls + shown[place].kernel.calls == 0) continue;
    EXPECT_EQ(traits.bytes, std::uint64_t{1} << 20);
    EXPECT_EQ(traits.kind, Kind::miss);
    EXPECT_FALSE(traits.crowded);
    const layout::TransferWay& way = traits.in_order ? shown[place].kernel : shown[place].host;
    EXPECT_EQ(way.estimate_ns, traits.in_order ? 77'000U : 123'000U);
    EXPECT_EQ(way.bytes, std::uint64_t{1} << 20);
  }
  EXPECT_EQ(calls, 2U);
}

TEST(CostsOfPaths, AChildKeepsTheEstimatesAndCountsItsOwnCalls) {
  std::vector<layout::TransferClass> shown(layout::kTransferClasses);
  PathCosts costs;
  note(costs, kMiss, Way::host, 123'000);
  costs.forget_after_fork();
  EXPECT_EQ(costs.estimate(kMiss, Way::host), 123'000U);
  costs.show_in(shown.data());
  std::uint64_t calls = 0;
  std::uint64_t estimates = 0;
  for (const layout::TransferClass& one : shown) {
    calls += one.host.calls + one.kernel.calls;
    estimates += one.host.estimate_ns + one.kernel.estimate_ns;
  }
  EXPECT_EQ(calls, 0U);
  EXPECT_EQ(estimates, 123'000U);
}

}  // namespace
}  // namespace wherry::file
