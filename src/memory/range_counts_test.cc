// SPDX-License-Identifier: Apache-2.0
#include "memory/range_counts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace wherry::memory {
namespace {

TEST(RangeCounts, AreThoseOfASimpleArray) {
  constexpr std::size_t kEnd = 60;
  std::array<int, kEnd> uses{};
  std::array<bool, kEnd> kept{}, known{};
  std::vector<RangeCounts::Range> added;
  RangeCounts counts;
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t start = random() % (kEnd - 1);
    const RangeCounts::Range range{start, start + 1 + random() % (kEnd - start - 1)};
    const auto each = [](const RangeCounts::Range& one, auto change) {
      for (std::uint64_t at = one.start; at < one.end; ++at) change(at);
    };
    if (added.size() < 12 && random() % 2 == 0) {
      counts.add(range.start, range.end);
      added.push_back(range);
      each(range, [&](std::size_t at) { ++uses[at], known[at] = true; });
    } else if (!added.empty()) {
      std::swap(added[random() % added.size()], added.back());
      counts.remove(added.back().start, added.back().end);
      each(added.back(), [&](std::size_t at) { --uses[at]; });
      added.pop_back();
    }
    if (random() % 500 == 0) {
      counts.keep(range.start, range.end);
      each(range, [&](std::size_t at) { kept[at] = known[at] = true; });
    }
    if (random() % 10 == 0 && !counts.idle().empty()) {
      const auto idle = counts.idle().front();
      counts.forget(idle.start, idle.end);
      each(idle, [&](std::size_t at) { known[at] = false; });
    }
    std::uint64_t idle_bytes = 0;
    for (const auto& idle : counts.idle()) {
      idle_bytes += idle.end - idle.start;
      each(idle, [&](std::size_t at) { ASSERT_TRUE(known[at] && uses[at] == 0 && !kept[at]) << at; });
    }
    std::uint64_t expected = 0;
    for (std::size_t at = 0; at < kEnd; ++at) expected += known[at] && uses[at] == 0 && !kept[at] ? 1 : 0;
    ASSERT_EQ(idle_bytes, expected);
    ASSERT_EQ(counts.idle_bytes(), expected);
    bool used = true;
    each(range, [&](std::size_t at) { used = used && uses[at] > 0; });
    ASSERT_EQ(counts.in_use(range.start, range.end), used);
  }
}

}  // namespace
}  // namespace wherry::memory
