// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/sample_length.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wherry::bench {
namespace {

TEST(SampleLength, FillsTheTimeAtTheRateOfTheWarmUp) {
  const Options options{.sizes = {}, .seconds = 0.5};
  const Sample sample{.size = 4096, .messages = 1000};
  EXPECT_NEAR(static_cast<double>(messages_for(sample, {.seconds = 0.01}, options)), 50'000, 1);
}

TEST(SampleLength, StaysWithinTheBytesOfAllSendersTogether) {
  const Options options{.sizes = {}, .bytes = 1 << 20, .seconds = 10};
  const Sample sample{.size = 1024, .messages = 1000, .senders = 4};
  EXPECT_EQ(messages_for(sample, {.seconds = 0.001}, options), 256U);
  EXPECT_LE(first_messages(sample, options), 256U);
}

TEST(SampleLength, LatencyHasEnoughRoundTripsForAThousandthThoughTheWarmUpWasInterrupted) {
  const Options options{.sizes = {}, .seconds = 0.05};
  const Sample sample{.question = Question::latency, .size = 4096, .messages = 1000};
  Outcome warm_up{.latencies_ns = std::vector<double>(999, 500.0)};  // a microsecond to and fro
  warm_up.latencies_ns.push_back(10e6);
  warm_up.seconds = 0.021;
  EXPECT_GE(messages_for(sample, warm_up, options), 20'000U);
  EXPECT_NEAR(static_cast<double>(messages_for(sample, warm_up, options)), 50'000, 1);
}

TEST(SampleLength, IsNeverTooShortToBeARate) {
  const Options options{.sizes = {}, .bytes = 1, .seconds = 1e-9};
  EXPECT_EQ(messages_for({.size = 1 << 27, .messages = 4}, {.seconds = 1}, options), 4U);
  EXPECT_EQ(messages_for({.question = Question::asleep, .size = 64, .messages = 20}, {.seconds = 1}, options), 20U);
}

}  // namespace
}  // namespace wherry::bench
