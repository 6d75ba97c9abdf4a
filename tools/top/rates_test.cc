// SPDX-License-Identifier: Apache-2.0
#include "top/rates.hpp"

#include <gtest/gtest.h>

namespace wherry::tools {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Reading reading(std::uint64_t at_ns, std::vector<EndpointReading> endpoints, pid_t pid = 10) {
  ProcessReading process;
  process.pid = pid;
  process.started_ns = 1;
  process.endpoints = std::move(endpoints);
  return {at_ns, {process}};
}

EndpointReading endpoint(std::uint32_t record, std::uint64_t bytes_sent, std::uint64_t generation = 1) {
  EndpointReading made;
  made.record = record;
  made.generation = generation;
  made.bytes_sent = bytes_sent;
  return made;
}

TEST(Rates, AreDifferencesPerSecond) {
  EndpointReading before = endpoint(0, 1000);
  EndpointReading now = endpoint(0, 3000);
  now.sends = 4;
  now.bytes_received = 10;
  now.receives = 6;
  now.send_sleeps = 2;
  now.receive_sleeps = 4;
  now.data_wakes = 8;
  now.space_wakes = 2;
  const Reading later = reading(5 * kSecond, {now});
  const auto all = activities(reading(3 * kSecond, {before}), later);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_DOUBLE_EQ(all[0].rates.bytes_sent, 1000);
  EXPECT_DOUBLE_EQ(all[0].rates.sends, 2);
  EXPECT_DOUBLE_EQ(all[0].rates.bytes_received, 5);
  EXPECT_DOUBLE_EQ(all[0].rates.receives, 3);
  EXPECT_DOUBLE_EQ(all[0].rates.sleeps, 3);
  EXPECT_DOUBLE_EQ(all[0].rates.wakes, 5);
}

TEST(Rates, OfANewEndpointCountFromWhenItWasOpened) {
  EndpointReading opened = endpoint(0, 1000);
  opened.opened_ns = 4 * kSecond;
  const Reading later = reading(8 * kSecond, {opened});
  EXPECT_DOUBLE_EQ(activities({}, later)[0].rates.bytes_sent, 250);
}

TEST(Rates, OfAReusedSlotDoNotCountItsLastUse) {
  EndpointReading reused = endpoint(0, 100, 3);
  reused.opened_ns = 7 * kSecond;
  const Reading later = reading(8 * kSecond, {reused});
  EXPECT_DOUBLE_EQ(activities(reading(kSecond, {endpoint(0, 90, 1)}), later)[0].rates.bytes_sent, 100);
}

TEST(Rates, OfACounterThatRunsBackwardsAreZero) {
  const Reading later = reading(2 * kSecond, {endpoint(0, 5)});
  EXPECT_DOUBLE_EQ(activities(reading(kSecond, {endpoint(0, 1000)}), later)[0].rates.bytes_sent, 0);
}

TEST(Rates, AtTheSameMomentAreZero) {
  const Reading same = reading(kSecond, {endpoint(0, 5)});
  EXPECT_DOUBLE_EQ(activities(reading(kSecond, {endpoint(0, 1)}), same)[0].rates.bytes_sent, 0);
}

TEST(Rates, TheBusiestComesFirstThenTheOrderOfSlots) {
  const Reading later = reading(2 * kSecond, {endpoint(0, 1), endpoint(1, 1), endpoint(2, 500)});
  const auto all = activities(reading(kSecond, {endpoint(0, 1), endpoint(1, 1), endpoint(2, 1)}), later);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].endpoint->record, 2U);
  EXPECT_EQ(all[1].endpoint->record, 0U);
  EXPECT_EQ(all[2].endpoint->record, 1U);
}

}  // namespace
}  // namespace wherry::tools
