// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/campaign.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>

#include "bench/harness/fake_system.hpp"

namespace wherry::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Options options(std::uint64_t seed = 1) { return {.sizes = {}, .samples = 6, .seed = seed}; }
Point point(std::size_t size) { return {"stream", {.size = size, .cores = {}}}; }

/// The meter of a machine without foreign load.
ForeignLoad undisturbed(const std::function<void()>& work) {
  work();
  return {};
}

/// Runs a and b at one size; the order in which they were called.
std::string turns(std::uint64_t seed, const LoadMeter& meter = undisturbed) {
  std::string order;
  FakeSystem a("a", [&](const Sample&) {
    order += 'a';
    return Outcome{.seconds = 1};
  });
  FakeSystem b("b", [&](const Sample&) {
    order += 'b';
    return Outcome{.seconds = 1};
  });
  Campaign(options(seed), {&a, &b}, {point(64)}, {}, meter).run();
  return order;
}

TEST(Campaign, SystemsTakeTurnsWithinEachRound) {
  const std::string order = turns(1);
  ASSERT_THAT(order, SizeIs(14));  // A warm-up and six samples of each.
  for (std::size_t i = 0; i < order.size(); i += 2) EXPECT_NE(order[i], order[i + 1]) << order;
}

TEST(Campaign, TheOrderOfTurnsComesFromTheSeed) {
  EXPECT_EQ(turns(3), turns(3));
  const std::string first = turns(1);
  EXPECT_TRUE(turns(2) != first || turns(3) != first || turns(4) != first);
}

constexpr Probe kNear{112, 51};
constexpr Probe kFar{530, 24};

/// A machine with cores far from each other after the runs that `far` names; samples take four times as long there.
struct Moving {
  std::function<bool(int)> far;
  int runs = 0;
  FakeSystem system{"one", [this](const Sample&) {
                      ++runs;
                      return Outcome{.seconds = far(runs) ? 4.0 : 1.0};
                    }};

  Prober prober() {
    return [this] { return std::optional(far(runs) ? kFar : kNear); };
  }
  Options options() { return {.sizes = {}, .samples = 6, .cores = {0, 1}}; }
  std::vector<Point> points(std::size_t count) {
    return std::vector<Point>(count, {"stream", {.size = 1'000'000, .cores = {0, 1}}});
  }
};

/// A foreign load of half a core during the first `disturbed` samples, and none after.
LoadMeter disturbed_at_first(int disturbed) {
  return [left = disturbed](const std::function<void()>& work) mutable {
    work();
    return ForeignLoad{.busy = left-- > 0 ? 0.5 : 0};
  };
}

TEST(Campaign, ASampleThatOthersDisturbedIsTakenAgainInTheSameTurn) {
  const std::string quiet = turns(1);
  std::string retaken = quiet;
  retaken.insert(2, 2, quiet[2]);  // behind the two warm-ups
  EXPECT_EQ(turns(1, disturbed_at_first(2)), retaken);
}

TEST(Campaign, ASampleCountsOnAMachineThatIsNeverQuietWhichIsSaid) {
  FakeSystem system("one", [](const Sample&) { return Outcome{.seconds = 1}; });
  Campaign campaign(options(), {&system}, {point(64)}, {}, disturbed_at_first(1000));
  EXPECT_EQ(campaign.run().at(0).n, 6U);
  EXPECT_EQ(campaign.circumstances().retaken, 12U);
  EXPECT_EQ(campaign.circumstances().worst.busy, 0.5);
}

TEST(Campaign, ASmokeTestTakesNoSampleAgain) {
  FakeSystem system("one", [](const Sample&) { return Outcome{.seconds = 1}; });
  Options smoke = options();
  smoke.smoke = true;
  Campaign campaign(smoke, {&system}, {point(64)}, {}, disturbed_at_first(1000));
  campaign.run();
  EXPECT_EQ(campaign.circumstances().retaken, 0U);
  Moving machine{[](int runs) { return runs == 3; }};
  smoke = machine.options();
  smoke.smoke = true;
  Campaign moving(smoke, {&machine.system}, machine.points(1), machine.prober(), undisturbed);
  moving.run();
  EXPECT_EQ(moving.circumstances().placement.retaken, 0U);
}

/// The deviation of every figure is nothing, so all samples were alike.
bool all_alike(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.n == 6 && row.mad == 0; });
}

TEST(Campaign, SamplesOfAMinoritysPlacementAreTakenAgain) {
  Moving machine{[](int runs) { return runs == 4 || runs == 5; }};  // Run 1 is the warm-up.
  Campaign campaign(machine.options(), {&machine.system}, machine.points(1), machine.prober(), undisturbed);
  EXPECT_TRUE(all_alike(campaign.run()));
  // The samples of runs 4 and 5, and that of run 6, before which the cores were still far.
  const PlacementSummary& placement = campaign.circumstances().placement;
  EXPECT_EQ(placement.retaken, 3U);
  EXPECT_EQ(machine.runs, 10);
  EXPECT_EQ(placement.elsewhere, 0U);
  ASSERT_THAT(placement.found, SizeIs(2));
  EXPECT_NEAR(placement.found[0].middle.round_trip_ns, 112, 1);
  EXPECT_EQ(campaign.circumstances().retaken, 0U);
}

TEST(Campaign, WhatTheMajorityIsShowsAtTheEndOfTheRun) {
  Moving machine{[](int runs) { return runs < 8; }};  // All of the first of three points.
  Campaign campaign(machine.options(), {&machine.system}, machine.points(3), machine.prober(), undisturbed);
  EXPECT_TRUE(all_alike(campaign.run()));
  EXPECT_EQ(campaign.circumstances().placement.elsewhere, 0U);
}

TEST(Campaign, AMachineThatDoesNotComeBackIsNotWaitedFor) {
  Moving machine{[](int runs) { return runs > 5; }};
  Campaign campaign(machine.options(), {&machine.system}, machine.points(1), machine.prober(), undisturbed);
  EXPECT_EQ(campaign.run().at(0).n, 6U);
  EXPECT_EQ(machine.runs, 7);
  EXPECT_EQ(campaign.circumstances().placement.retaken, 0U);
  EXPECT_EQ(campaign.circumstances().placement.elsewhere, 2U);
}

TEST(Campaign, AMachineThatMovesAllTheTimeEndsAndSaysWhatCounts) {
  int probes = 0;
  Moving machine{[](int) { return false; }};
  const Prober restless = [&] { return std::optional(++probes % 3 == 0 ? kFar : kNear); };
  Campaign campaign(machine.options(), {&machine.system}, machine.points(1), restless, undisturbed);
  EXPECT_EQ(campaign.run().at(0).n, 6U);
  EXPECT_LE(campaign.circumstances().placement.retaken, 12U);
  EXPECT_LE(machine.runs, 1 + 6 + 12);
}

TEST(Campaign, ALookThatCameToNothingCountsAgainstNoSample) {
  Moving machine{[](int) { return false; }};
  Campaign campaign(machine.options(), {&machine.system}, machine.points(1), [] { return std::nullopt; }, undisturbed);
  EXPECT_EQ(campaign.run().at(0).n, 6U);
  EXPECT_EQ(machine.runs, 7);
  EXPECT_THAT(campaign.circumstances().placement.found, SizeIs(0));
}

TEST(Campaign, SamplesThatFailWhenTheyAreTakenAgainLeaveTheSystemOut) {
  Moving machine{[](int runs) { return runs == 4; }};
  FakeSystem fails("fails", [&](const Sample& sample) {
    if (machine.runs >= 7) throw std::runtime_error("tired");
    return machine.system.run(sample);
  });
  Campaign campaign(machine.options(), {&fails}, machine.points(1), machine.prober(), undisturbed);
  EXPECT_THAT(campaign.run(), SizeIs(0));
  EXPECT_THAT(campaign.circumstances().failures, ElementsAre(Field(&Failure::reason, "tired")));
}

TEST(Campaign, SamplesOfASystemThatFailedAreNotAmongThoseThatCount) {
  Moving machine{[](int runs) { return runs > 5; }};
  FakeSystem fails("fails", [&](const Sample& sample) {
    if (machine.runs >= 6) throw std::runtime_error("tired");
    return machine.system.run(sample);
  });
  Campaign campaign(machine.options(), {&fails}, machine.points(1), machine.prober(), undisturbed);
  EXPECT_THAT(campaign.run(), SizeIs(0));
  EXPECT_EQ(campaign.circumstances().placement.elsewhere, 0U);
}

TEST(Campaign, WhereThereAreNoTwoCoresNothingIsProbedAndTheReasonIsSaid) {
  Moving machine{[](int) { return false; }};
  Options one_core = machine.options();
  one_core.cores = {1};
  EXPECT_THAT(text_of(Campaign(one_core, {}, {}).circumstances().placement), HasSubstr("kept on one core"));
  EXPECT_THAT(text_of(Campaign(options(), {}, {}).circumstances().placement), HasSubstr("not probed"));
}

TEST(Campaign, TheWarmUpIsNoSampleButSaysHowManyMessagesMakeOne) {
  std::vector<std::uint64_t> messages;
  FakeSystem system("one", [&](const Sample& sample) {
    messages.push_back(sample.messages);
    return Outcome{.seconds = static_cast<double>(sample.messages) * 1e-4};
  });
  const std::vector<Row> rows = Campaign(options(), {&system}, {point(1 << 20)}, {}, undisturbed).run();
  EXPECT_EQ(rows.at(0).n, 6U);
  ASSERT_THAT(messages, SizeIs(7));
  EXPECT_EQ(messages[1], 1024U);  // 1 GiB takes less than the wanted time.
}

TEST(Campaign, ASystemThatFailsIsLeftOutThereAndOnlyThere) {
  FakeSystem broken("broken", [](const Sample& sample) {
    if (sample.size == 64) throw std::runtime_error("too small");
    return Outcome{.seconds = 1};
  });
  FakeSystem sound("sound", [](const Sample&) { return Outcome{.seconds = 1}; });
  Campaign campaign(options(), {&broken, &sound}, {point(64), point(128)});
  for (const Row& row : campaign.run()) EXPECT_FALSE(row.system == "broken" && row.size == 64);
  EXPECT_THAT(campaign.circumstances().failures, ElementsAre(Field(&Failure::reason, "too small")));
}

TEST(Campaign, ASystemThatCannotIsNotAsked) {
  FakeSystem system("one", [](const Sample&) -> Outcome { throw std::runtime_error("asked"); });
  Campaign campaign(options(), {&system}, {point(FakeSystem::kUnable)});
  EXPECT_THAT(campaign.run(), SizeIs(0));
  EXPECT_THAT(campaign.circumstances().failures, SizeIs(0));
}

}  // namespace
}  // namespace wherry::bench
