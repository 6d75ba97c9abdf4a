// SPDX-License-Identifier: Apache-2.0
#include "file/direct/reuse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::file {
namespace {

constexpr Reuse::Costs kCosts{.past = 100, .through = 1000, .hit = 50};

/// A program that reads a file of some parts from its beginning to its end, again and again, on a machine whose cache
/// keeps the file or does not.
class Reader {
 public:
  explicit Reader(std::size_t parts, bool is_kept = true) : parts_(parts), is_kept_(is_kept) {}
  /// Returns how long all passes took.
  std::uint64_t read(int passes, const Reuse::Costs& costs = kCosts) {
    std::uint64_t time = 0;
    for (int pass = 0; pass < passes; ++pass) {
      for (Part& part : parts_) {
        if (part.is_there) {
          time += costs.hit;
          continue;
        }
        const bool fills = reuse_.is_worth_filling(costs, part.was_read);
        part.was_read = true;
        part.is_there = fills && is_kept_;
        time += fills ? costs.through : costs.past;
      }
    }
    return time;
  }

 private:
  struct Part {
    bool was_read = false;
    bool is_there = false;
  };
  std::vector<Part> parts_;
  bool is_kept_;
  Reuse reuse_{};
};

TEST(Reuse, OfAFileThatIsReadOnceIsNotExpected) { EXPECT_EQ(Reader(10).read(1), 10 * kCosts.past); }

TEST(Reuse, MakesAFileThatIsReadOftenOneOfHits) {
  constexpr int kPasses = 1000;
  const std::uint64_t hits = 10 * kCosts.hit * kPasses;
  EXPECT_LT(Reader(10).read(kPasses), hits + hits / 20);
}

TEST(Reuse, LosesAtMostAsMuchAsTheBestOfBothWaysTakesWheneverTheProgramStops) {
  for (int passes = 1; passes < 200; ++passes) {
    const std::uint64_t never = 10 * kCosts.past * static_cast<std::uint64_t>(passes);
    const std::uint64_t at_once = 10 * (kCosts.through + kCosts.hit * static_cast<std::uint64_t>(passes - 1));
    EXPECT_LE(Reader(10).read(passes), 2 * std::min(never, at_once)) << passes;
  }
}

TEST(Reuse, IsGivenUpMoreAndMoreWhereTheCacheDoesNotKeepTheFile) {
  constexpr int kPasses = 100'000;
  const std::uint64_t past = 10 * kCosts.past * kPasses;
  EXPECT_LT(Reader(10, false).read(kPasses), past + past / 100);
}

TEST(Reuse, SavesNothingWhereHitsAreNotFaster) {
  const Reuse::Costs costs{.past = 100, .through = 1000, .hit = 100};
  EXPECT_EQ(Reader(10).read(1000, costs), 10 * costs.past * 1000);
}

TEST(Reuse, OfTheNextFileBeginsAnew) {
  Reuse reuse;
  EXPECT_FALSE(reuse.is_worth_filling(kCosts, false));
  int reads = 1;
  while (!reuse.is_worth_filling(kCosts, true)) ++reads;
  EXPECT_EQ(reads, 18) << "900 more, of which each saves 50";
  reuse.reset();
  EXPECT_FALSE(reuse.is_worth_filling(kCosts, false));
  EXPECT_FALSE(reuse.is_worth_filling(kCosts, true));
}

}  // namespace
}  // namespace wherry::file
