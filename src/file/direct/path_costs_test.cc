// SPDX-License-Identifier: Apache-2.0
#include "file/direct/path_costs.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace wherry::file {
namespace {

using Kind = PathCosts::Kind;
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
    const PathCosts::Choice choice = costs.choose(kind, bytes);
    const std::uint64_t took = machine.time(choice.way);
    costs.note(kind, choice.way, bytes, took);
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

TEST(CostsOfPaths, OfOneSizeAndKindSayNothingOfOthers) {
  PathCosts costs;
  run(costs, {.host = 90'000'000, .kernel = 1000}, Kind::miss, 1 << 16, 2000);
  const PathCosts fresh;
  EXPECT_EQ(costs.estimate(Kind::miss, Way::host, 1 << 24), fresh.estimate(Kind::miss, Way::host, 1 << 24));
  EXPECT_EQ(costs.estimate(Kind::hit, Way::host, 1 << 16), fresh.estimate(Kind::hit, Way::host, 1 << 16));
}

TEST(CostsOfPaths, AreNotMovedFarByOneCallThatHadNoCore) {
  PathCosts costs;
  run(costs, {.host = 100'000, .kernel = 200'000}, Kind::miss, 1 << 20, 1000);
  costs.note(Kind::miss, Way::host, 1 << 20, 1'000'000'000);
  EXPECT_LT(costs.estimate(Kind::miss, Way::host, 1 << 20), 150'000U);
}

}  // namespace
}  // namespace wherry::file
