// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace wherry::bench {
namespace {

using ::testing::SizeIs;

constexpr Probe kNear{112, 51};
constexpr Probe kFar{530, 24};
constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

/// A machine with cores far from each other during the looks from `gone` on, up to `back`.
struct Machine {
  int gone;
  int back;
  int looks = 0;

  [[nodiscard]] bool far() const { return looks >= gone && looks < back; }
  Prober prober() {
    return [this] {
      const Probe probe = far() ? kFar : kNear;
      ++looks;
      return std::optional(probe);
    };
  }
};

/// Watches without a pause.
PlacementWatch watch(Machine& machine) { return PlacementWatch(machine.prober(), std::chrono::milliseconds{0}); }

TEST(PlacementWatch, HoweverLongItWaitsTheMajorityStaysWhatItWas) {
  Machine machine{.gone = 4, .back = 1000};
  PlacementWatch watched = watch(machine);
  PlacementWatch::Around near;
  PlacementWatch::Around far;
  for (int i = 0; i < 4; ++i) near = {watched.after(), watched.before()};
  far.before = far.after = watched.after();
  EXPECT_TRUE(watched.await_majority(kForever));
  EXPECT_GT(machine.looks, machine.back);
  EXPECT_TRUE(watched.counts(near));
  EXPECT_FALSE(watched.counts(far));
  ASSERT_THAT(watched.found(), SizeIs(2));
  EXPECT_EQ(watched.found()[0].probes, 4U);
  EXPECT_EQ(watched.found()[1].probes, 1U);
}

TEST(PlacementWatch, OnceFrozenItComparesLaterProbesWithWhatItFound) {
  Machine machine{.gone = 4, .back = 1000};
  PlacementWatch watched = watch(machine);
  for (int i = 0; i < 4; ++i) watched.after();
  watched.freeze();
  PlacementWatch::Around far;
  for (int i = 0; i < 10; ++i) far.before = far.after = watched.after();
  EXPECT_FALSE(watched.counts(far));
  machine.back = machine.looks;
  const std::size_t near = watched.after();
  EXPECT_TRUE(watched.counts({near, near}));
  ASSERT_THAT(watched.found(), SizeIs(1));
  EXPECT_EQ(watched.found()[0].probes, 4U);
}

TEST(PlacementWatch, ItWaitsNoLongerThanItIsTold) {
  Machine machine{.gone = 2, .back = 1000};
  PlacementWatch watched = watch(machine);
  for (int i = 0; i < 2; ++i) watched.after();
  const std::size_t far = watched.after();
  EXPECT_FALSE(watched.await_majority(0));
  EXPECT_FALSE(watched.counts({far, far}));
  EXPECT_LE(machine.looks, 4);
}

}  // namespace
}  // namespace wherry::bench
