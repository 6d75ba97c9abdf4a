// SPDX-License-Identifier: Apache-2.0
// The choice on machines whose costs are known.
#include "file/path_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace wherry::file {
namespace {

using wherry::files::Reason;

/// What reads cost, in ns.
struct Machine {
  double call = 250;  // straight
  double byte = 0.03;
  double filled_call = 500;
  double filled_byte = 0.075;
  double hit_call = 30;
  double hit_byte = 0.022;

  [[nodiscard]] double straight(std::size_t bytes) const { return call + byte * static_cast<double>(bytes); }
  [[nodiscard]] double filled(std::size_t bytes) const {
    return filled_call + filled_byte * static_cast<double>(bytes);
  }
  [[nodiscard]] double hit(std::size_t bytes) const { return hit_call + hit_byte * static_cast<double>(bytes); }
};

constexpr PathChoice::Costs kPriors{.call = 1000, .byte = 0.1, .filled_call = 1000, .filled_byte = 0.1};
constexpr std::size_t kWindow = 256 << 10;

/// A reader in order through a file that was not read before. The time of each way, and of the choice.
struct Pass {
  double chosen = 0;
  double all_straight = 0;
  double all_filled = 0;
  int calls = 0;
  int explored = 0;
  int filled = 0;
};

Pass first_touch(PathChoice& choice, const Machine& machine, std::size_t bytes, std::size_t file) {
  Pass pass;
  std::size_t cached = 0;  // up to there
  for (std::size_t at = 0; at < file; at += bytes) {
    ++pass.calls;
    pass.all_straight += machine.straight(bytes);
    if (at + bytes <= cached) {
      pass.chosen += machine.hit(bytes);
      continue;
    }
    const std::size_t fetched = bytes + kWindow;
    const PathChoice::Choice way = choice.choose(bytes, true, fetched);
    pass.explored += way.reason == Reason::explored ? 1 : 0;
    pass.filled += way.fill ? 1 : 0;
    const double cost = way.fill ? machine.filled(fetched) + machine.hit(bytes) : machine.straight(bytes);
    if (way.fill) cached = at + fetched;
    if (way.timed && way.fill) choice.measured_filled(fetched, cost);
    if (way.timed && !way.fill) choice.measured_straight(bytes, cost);
    pass.chosen += cost;
  }
  const double windows = static_cast<double>(file) / static_cast<double>(bytes + kWindow);
  pass.all_filled = windows * machine.filled(bytes + kWindow) + pass.calls * machine.hit(bytes);
  return pass;
}

/// After it has learned.
Pass learned(PathChoice& choice, const Machine& machine, std::size_t bytes) {
  for (int i = 0; i < 4; ++i) first_touch(choice, machine, bytes, bytes * 20'000);
  return first_touch(choice, machine, bytes, bytes * 20'000);
}

std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all;
  for (std::size_t bytes = 512; bytes <= 4 << 20; bytes *= 2) all.push_back(bytes);
  return all;
}

TEST(PathChoice, IsAlmostAsFastAsTheBestWayAtEachSize) {
  for (const double call : {100.0, 250.0, 3000.0, 20'000.0}) {
    for (const double filled_byte : {0.02, 0.075, 0.4}) {
      const Machine machine{.call = call, .filled_call = call * 2, .filled_byte = filled_byte};
      PathChoice choice(kPriors);
      for (const std::size_t bytes : sizes()) {
        const Pass pass = learned(choice, machine, bytes);
        EXPECT_LE(pass.chosen, std::min(pass.all_straight, pass.all_filled) / 0.95)
            << call << " " << filled_byte << " " << bytes << ": " << pass.all_straight << " " << pass.all_filled;
      }
    }
  }
}

TEST(PathChoice, TheCacheWinsForSmallReadsInOrderAndStraightForLarge) {
  const Machine machine;
  PathChoice choice(kPriors);
  EXPECT_GT(learned(choice, machine, 512).filled, learned(choice, machine, 512).calls / 2000);
  const Pass small = learned(choice, machine, 512);
  EXPECT_LT(small.chosen, small.all_straight / 2);
  const Pass large = learned(choice, machine, 1 << 20);
  EXPECT_EQ(large.filled, large.explored);
}

TEST(PathChoice, ExploresAtMostOneCallInAHundred) {
  for (const std::size_t bytes : sizes()) {
    PathChoice choice(kPriors);
    const Pass pass = first_touch(choice, {}, bytes, bytes * 50'000);
    EXPECT_LE(pass.explored, pass.calls / 100) << bytes;
  }
}

TEST(PathChoice, FollowsCostsThatFlip) {
  const Machine slow_host{.call = 30'000, .byte = 1, .filled_call = 30'000, .filled_byte = 1};
  const Machine slow_cache{.call = 200, .byte = 0.01, .filled_call = 20'000, .filled_byte = 2};
  PathChoice choice(kPriors);
  for (int i = 0; i < 3; ++i) {
    const Pass cached = learned(choice, slow_host, 8192);
    EXPECT_LE(cached.chosen, cached.all_filled / 0.95);
    const Pass straight = learned(choice, slow_cache, 8192);
    EXPECT_LE(straight.chosen, straight.all_straight / 0.95);
  }
}

TEST(PathChoice, OneSlowCallSaysLittle) {
  PathChoice choice(kPriors);
  for (int i = 0; i < 20; ++i) choice.measured_straight(4096, 400);
  choice.measured_straight(4096, 1e8);
  EXPECT_LT(choice.straight(4096), 600);
}

TEST(PathChoice, HitsThatAreSlowerThanTheKernelAreNotTakenUntilTheyAreFaster) {
  PathChoice choice(kPriors);
  constexpr std::size_t kBytes = 1 << 20;
  double hit = 80'000;
  const double straight = 30'000;
  int taken = 0;
  int others = 0;
  const auto play = [&](int calls) {
    taken = others = 0;
    for (int i = 0; i < calls; ++i) {
      const bool pays = choice.hits_pay(kBytes);
      const bool sample = (i + 1) % PathChoice::hits_between(kBytes) == 0;
      bool take = pays;
      if (!pays) take = choice.tries_hit(kBytes);
      if (pays && sample) take = !choice.tries_straight(kBytes);
      taken += take ? 1 : 0;
      others += take == pays ? 0 : 1;
      if (!take) choice.measured_straight(kBytes, straight);
      if (take && (sample || !pays)) choice.measured_hit(kBytes, hit);
    }
  };
  play(2000);
  play(10'000);
  EXPECT_LE(taken, 100);
  EXPECT_LE(others, 100);
  hit = 10'000;
  play(10'000);
  play(10'000);
  EXPECT_GE(taken, 9900);
  EXPECT_LE(others, 100);
}

TEST(PathChoice, WhatIsNotReadInOrderIsCachedOnlyIfHitsAreFaster) {
  PathChoice choice(kPriors);
  for (int i = 0; i < 10; ++i) {
    choice.measured_straight(4096, 400);
    choice.measured_hit(4096, 100);
    choice.measured_straight(1 << 20, 20'000);
    choice.measured_hit(1 << 20, 40'000);
  }
  EXPECT_TRUE(choice.choose(4096, false, 4096).admit);
  EXPECT_FALSE(choice.choose(4096, false, 4096).fill);
  EXPECT_FALSE(choice.choose(1 << 20, false, 1 << 20).admit);
}

}  // namespace
}  // namespace wherry::file
