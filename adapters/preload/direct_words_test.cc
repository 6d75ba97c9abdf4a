// SPDX-License-Identifier: Apache-2.0
#include "direct_words.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace wherry::preload {
namespace {

std::uint32_t pause_ms(const Word& word, std::uint32_t before) { return word.time() - before; }

TEST(DirectWords, APauseIsTwiceAsLongAfterEachFailureUpToAMinute) {
  Word word;
  std::uint32_t expected = kPauseMs;
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t before = now_ms();
    word = {pause_after(word.failures() + 1)};
    EXPECT_TRUE(word.waits());
    EXPECT_EQ(word.slot(), -1);
    // The clock may have gone on between the two looks.
    EXPECT_GE(pause_ms(word, before), expected);
    EXPECT_FALSE(is_over(word.time()));
    EXPECT_TRUE(is_over(word.time() - kMostPauseMs - 1));
    expected = expected * 2 < kMostPauseMs ? expected * 2 : kMostPauseMs;
  }
  EXPECT_EQ(word.failures(), kMostFailures);
}

TEST(DirectWords, ASlotIsNoFailure) {
  const Word word{Word::of(kFirstSlot + 7)};
  EXPECT_EQ(word.slot(), 7);
  EXPECT_FALSE(word.waits());
  EXPECT_EQ(word.failures(), 0U);
}

TEST(DirectWords, AMomentIsOverAlsoWhereTheClockHasBegunAnew) {
  const std::uint32_t now = now_ms();
  EXPECT_TRUE(is_over(now - 1));
  EXPECT_FALSE(is_over(now + 1'000'000));
}

}  // namespace
}  // namespace wherry::preload
