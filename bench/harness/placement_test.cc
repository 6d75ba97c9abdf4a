// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace wherry::bench {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Probes of one placement: both measurements lie evenly within `noise` of the middle.
std::vector<Probe> around(Probe middle, std::size_t count, double noise, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<double> share(1 - noise, 1 + noise);
  std::vector<Probe> probes;
  while (probes.size() < count) {
    const double round_trip = middle.round_trip_ns * share(random);
    probes.push_back({round_trip, middle.copy_gb_s * share(random)});
  }
  return probes;
}

/// How many probes each placement has.
std::vector<std::size_t> counts(const Placements& placements) {
  std::vector<std::size_t> found;
  for (const Placement& one : placements.found) found.push_back(one.probes);
  return found;
}

std::vector<Probe> joined(std::initializer_list<std::vector<Probe>> parts) {
  std::vector<Probe> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Two cores of one cache, two threads of one core, two caches: as seen on virtual machines of two makes.
constexpr Probe kNear{115, 50};
constexpr Probe kThreads{60, 20};
constexpr Probe kFar{530, 24};

TEST(Placement, NothingIsFoundWhereNothingWasProbed) { EXPECT_THAT(classify({}).found, SizeIs(0)); }

TEST(Placement, ProbesThatAreAllAlikeAreOne) {
  for (const std::size_t count : {1U, 2U, 5U, 1000U}) {
    const Placements placements = classify(around(kNear, count, 0.03, 1));
    EXPECT_THAT(counts(placements), ElementsAre(count));
    EXPECT_NEAR(placements.found[0].middle.round_trip_ns, 115, 115 * 0.03);
    EXPECT_NEAR(placements.found[0].middle.copy_gb_s, 50, 50 * 0.03);
  }
}

TEST(Placement, NoiseOfAFifthMakesNoPlacement) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    EXPECT_THAT(counts(classify(around(kNear, 1 + seed, 0.2, seed))), SizeIs(1)) << seed;
  }
}

TEST(Placement, ThreeAreToldApartWhicheverComesFirst) {
  std::vector<Probe> probes =
      joined({around(kThreads, 20, 0.2, 1), around(kNear, 60, 0.2, 2), around(kFar, 40, 0.2, 3)});
  const Placements placements = classify(probes);
  ASSERT_THAT(counts(placements), ElementsAre(60, 40, 20));
  EXPECT_NEAR(placements.found[0].middle.round_trip_ns, 115, 12);
  EXPECT_NEAR(placements.found[1].middle.round_trip_ns, 530, 53);
  EXPECT_NEAR(placements.found[2].middle.copy_gb_s, 20, 2);
  EXPECT_THAT(std::vector(placements.of.begin(), placements.of.begin() + 20), Each(2));
  EXPECT_THAT(std::vector(placements.of.begin() + 20, placements.of.begin() + 80), Each(0));
  EXPECT_THAT(std::vector(placements.of.begin() + 80, placements.of.end()), Each(1));
  std::shuffle(probes.begin(), probes.end(), std::minstd_rand(4));
  EXPECT_THAT(counts(classify(probes)), ElementsAre(60, 40, 20));
}

TEST(Placement, AFactorOfTwoInOneMeasurementIsEnough) {
  for (const Probe other : {Probe{230, 50}, Probe{115, 25}}) {
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
      const std::vector<Probe> probes = joined({around(kNear, 60, 0.2, seed), around(other, 30, 0.2, seed + 1)});
      EXPECT_THAT(counts(classify(probes)), ElementsAre(60, 30)) << seed;
    }
  }
}

TEST(Placement, OneProbeFarFromAllOthersIsNotOfTheMajority) {
  std::vector<Probe> probes = around(kNear, 30, 0.1, 1);
  probes[0] = {6193, 25};
  const Placements placements = classify(probes);
  EXPECT_THAT(counts(placements), ElementsAre(29, 1));
  EXPECT_EQ(placements.of[0], 1U);
}

TEST(Placement, ScaleDoesNotMatter) {
  for (const double scale : {0.1, 10.0}) {
    std::vector<Probe> probes = joined({around(kNear, 60, 0.2, 2), around(kFar, 40, 0.2, 3)});
    for (Probe& probe : probes) probe = {probe.round_trip_ns * scale, probe.copy_gb_s / scale};
    EXPECT_THAT(counts(classify(probes)), ElementsAre(60, 40));
  }
}

}  // namespace
}  // namespace wherry::bench
