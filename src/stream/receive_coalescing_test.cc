// SPDX-License-Identifier: Apache-2.0
#include "stream/receive_coalescing.hpp"

#include <gtest/gtest.h>

namespace wherry::stream {
namespace {

/// Makes looks that find `bytes` each until it pauses. Returns how many that took, at most `limit`.
int looks_until_it_pauses(ReceiveCoalescing& coalescing, std::size_t bytes, int limit) {
  for (int i = 1; i <= limit; ++i) {
    coalescing.found(bytes);
    if (coalescing.pausing()) return i;
  }
  return limit + 1;
}

TEST(ReceiveCoalescing, ManySmallFindsInARowBeginAPause) {
  ReceiveCoalescing coalescing;
  EXPECT_EQ(looks_until_it_pauses(coalescing, 64, 100), 32);
}

TEST(ReceiveCoalescing, WhoWaitsForEachMessageNeverPauses) {
  ReceiveCoalescing coalescing;
  for (int i = 0; i < 10000; ++i) {
    coalescing.found(64);
    coalescing.found(0);
    ASSERT_FALSE(coalescing.pausing());
  }
}

TEST(ReceiveCoalescing, LargeFindsNeedNoPause) {
  ReceiveCoalescing coalescing;
  EXPECT_EQ(looks_until_it_pauses(coalescing, 65536, 10000), 10001);
}

TEST(ReceiveCoalescing, APauseThatGathersMuchGoesOn) {
  ReceiveCoalescing coalescing;
  looks_until_it_pauses(coalescing, 64, 100);
  for (int i = 0; i < 10000; ++i) coalescing.found(i % 2 == 0 ? 3 * 64 : 64);
  EXPECT_TRUE(coalescing.pausing());
}

TEST(ReceiveCoalescing, APauseThatGathersNothingEndsAndComesBackEverMoreSeldom) {
  ReceiveCoalescing coalescing;
  for (const int looks : {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536}) {
    ASSERT_EQ(looks_until_it_pauses(coalescing, 64, 100000), looks);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(coalescing.pausing());
      coalescing.found(64);
    }
    ASSERT_FALSE(coalescing.pausing());
  }
}

TEST(ReceiveCoalescing, APauseThatPaysForgivesThoseThatDidNot) {
  ReceiveCoalescing coalescing;
  looks_until_it_pauses(coalescing, 64, 100);
  for (int i = 0; i < 2; ++i) coalescing.found(64);
  EXPECT_EQ(looks_until_it_pauses(coalescing, 64, 100), 64);
  coalescing.found(4096);
  for (int i = 0; i < 2; ++i) coalescing.found(0);
  EXPECT_EQ(looks_until_it_pauses(coalescing, 64, 100), 64) << "doubled from the first looks, not from the last";
}

TEST(ReceiveCoalescing, APauseTakesItsTimeAndOnlyWhenItIsOn) {
  ReceiveCoalescing coalescing;
  looks_until_it_pauses(coalescing, 64, 100);
  const auto start = std::chrono::steady_clock::now();
  coalescing.before_look();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::microseconds(1));
}

}  // namespace
}  // namespace wherry::stream
