// SPDX-License-Identifier: Apache-2.0
#include "stream/receive_coalescing.hpp"

#include <gtest/gtest.h>

namespace wherry::stream {
namespace {

/// Looks that find `bytes` each until it pauses; how many that took, at most `limit`.
int looks_until_it_pauses(ReceiveCoalescing& pace, std::size_t bytes, int limit) {
  for (int i = 1; i <= limit; ++i) {
    pace.found(bytes);
    if (pace.pausing()) return i;
  }
  return limit + 1;
}

TEST(ReceiveCoalescing, ManySmallFindsInARowBeginAPause) {
  ReceiveCoalescing pace;
  EXPECT_EQ(looks_until_it_pauses(pace, 64, 100), 32);
}

TEST(ReceiveCoalescing, WhoWaitsForEachMessageNeverPauses) {
  ReceiveCoalescing pace;
  for (int i = 0; i < 10000; ++i) {
    pace.found(64);
    pace.found(0);
    ASSERT_FALSE(pace.pausing());
  }
}

TEST(ReceiveCoalescing, LargeFindsNeedNoPause) {
  ReceiveCoalescing pace;
  EXPECT_EQ(looks_until_it_pauses(pace, 65536, 10000), 10001);
}

TEST(ReceiveCoalescing, APauseThatGathersMuchGoesOn) {
  ReceiveCoalescing pace;
  looks_until_it_pauses(pace, 64, 100);
  for (int i = 0; i < 10000; ++i) pace.found(i % 2 == 0 ? 3 * 64 : 64);
  EXPECT_TRUE(pace.pausing());
}

TEST(ReceiveCoalescing, APauseThatGathersNothingEndsAndComesBackEverMoreSeldom) {
  ReceiveCoalescing pace;
  for (const int patience : {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536}) {
    ASSERT_EQ(looks_until_it_pauses(pace, 64, 100000), patience);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(pace.pausing());
      pace.found(64);
    }
    ASSERT_FALSE(pace.pausing());
  }
}

TEST(ReceiveCoalescing, APauseThatPaysForgivesThoseThatDidNot) {
  ReceiveCoalescing pace;
  looks_until_it_pauses(pace, 64, 100);
  for (int i = 0; i < 2; ++i) pace.found(64);
  EXPECT_EQ(looks_until_it_pauses(pace, 64, 100), 64);
  pace.found(4096);
  for (int i = 0; i < 2; ++i) pace.found(0);
  EXPECT_EQ(looks_until_it_pauses(pace, 64, 100), 64) << "doubled from the first patience, not from the last";
}

TEST(ReceiveCoalescing, APauseTakesItsTimeAndOnlyWhenItIsOn) {
  ReceiveCoalescing pace;
  looks_until_it_pauses(pace, 64, 100);
  const auto start = std::chrono::steady_clock::now();
  pace.before_look();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::microseconds(1));
}

}  // namespace
}  // namespace wherry::stream
