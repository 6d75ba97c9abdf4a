// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bench/harness/fake_system.hpp"

namespace wherry::bench {
namespace {

std::map<std::string, Row> rows_of(bool in_place, const Sample& sample, const std::vector<Outcome>& outcomes) {
  const FakeSystem system("fake", [](const Sample&) { return Outcome{}; }, in_place);
  std::vector<Figures> figures;
  for (const Outcome& outcome : outcomes) figures.push_back(figures_of(system, sample, outcome));
  std::vector<Row> rows;
  append_rows(rows, "stream", system, sample, figures);
  std::map<std::string, Row> by_metric;
  for (const Row& row : rows) by_metric[row.metric] = row;
  return by_metric;
}

Outcome lasting(double seconds) {
  return {.seconds = seconds, .cpu_seconds = 2 * seconds, .context_switches = 30, .memory_bytes = 8000};
}

constexpr std::size_t kMegabyte = 1'000'000;

TEST(Rows, ThroughputIsTheMedianOverSamplesOfWhatAllSendersSent) {
  const Sample sample{.size = kMegabyte, .messages = 500, .senders = 4};  // 2 GB
  const auto rows = rows_of(false, sample, {lasting(1), lasting(2), lasting(8)});
  EXPECT_DOUBLE_EQ(rows.at("GB/s").median, 1);
  EXPECT_DOUBLE_EQ(rows.at("GB/s").mad, 0.75);  // 2, 1, 0.25: deviations 1, 0, 0.75
  EXPECT_EQ(rows.at("GB/s").n, 3U);
  EXPECT_DOUBLE_EQ(rows.at("msgs/s").median, 1000);
  EXPECT_DOUBLE_EQ(rows.at("cpu_s_per_GB").median, 2);
  EXPECT_DOUBLE_EQ(rows.at("switches_per_GB").median, 15);
  EXPECT_DOUBLE_EQ(rows.at("memory_bytes_per_connection").median, 2000);
  EXPECT_EQ(rows.at("GB/s").senders, 4U);
  EXPECT_EQ(rows.at("GB/s").version, "1.0");
}

TEST(Rows, HandingOverInPlaceIsNotCountedInBytes) {
  Sample sample{.size = kMegabyte, .messages = 500};
  EXPECT_EQ(rows_of(true, sample, {lasting(1)}).count("GB/s"), 0U);
  EXPECT_EQ(rows_of(true, sample, {lasting(1)}).count("msgs/s"), 1U);
  sample.touched = true;
  EXPECT_EQ(rows_of(true, sample, {lasting(1)}).count("GB/s"), 1U);
  EXPECT_EQ(rows_of(true, sample, {lasting(1)}).at("GB/s").mode, "touched");
}

TEST(Rows, TheFirstLapIsAFigureWhereARingHoldsSeveralLargeMessages) {
  Outcome outcome{.seconds = 1, .lap = 4, .first_lap_seconds = 0.5};
  Sample sample{.size = 16 << 20, .messages = 500};
  EXPECT_NEAR(rows_of(false, sample, {outcome}).at("first_lap_GB/s").median, 0.134, 0.001);
  outcome.lap = 1;
  EXPECT_EQ(rows_of(false, sample, {outcome}).count("first_lap_GB/s"), 0U);
  outcome.lap = 4;
  EXPECT_EQ(rows_of(true, sample, {outcome}).count("first_lap_GB/s"), 0U);
  sample.size = 8 << 20;
  EXPECT_EQ(rows_of(false, sample, {outcome}).count("first_lap_GB/s"), 0U);
}

TEST(Rows, WhereThePagesAreThereBeforehandTheFirstLapIsNoFigure) {
  const Outcome outcome{.seconds = 1, .lap = 4, .first_lap_seconds = 0.5};
  const Sample sample{.size = 16 << 20, .messages = 500, .touched = true};
  for (const bool prefaulted : {false, true}) {
    const FakeSystem system("fake", [](const Sample&) { return Outcome{}; }, true, prefaulted);
    const Figures figures = figures_of(system, sample, outcome);
    EXPECT_EQ(std::ranges::count(figures, "first_lap_GB/s", &Figure::metric), prefaulted ? 0 : 1);
  }
}

TEST(Rows, LatenciesFromSleepHaveNamesOfTheirOwn) {
  Outcome outcome;
  for (int i = 1; i <= 1000; ++i) outcome.latencies_ns.push_back(i);
  auto rows = rows_of(false, {.question = Question::latency, .size = 64, .messages = 1000}, {outcome});
  EXPECT_DOUBLE_EQ(rows.at("ns_p50").median, 500);
  EXPECT_DOUBLE_EQ(rows.at("ns_p99").median, 990);
  EXPECT_DOUBLE_EQ(rows.at("ns_p99.9").median, 999);
  EXPECT_DOUBLE_EQ(rows.at("ns_max").median, 1000);
  rows = rows_of(false, {.question = Question::asleep, .size = 64, .messages = 1000}, {outcome});
  EXPECT_EQ(rows.count("ns_p50"), 0U);
  EXPECT_DOUBLE_EQ(rows.at("asleep_ns_p50").median, 500);
}

TEST(Rows, TooFewRoundTripsHaveNo999thThousandth) {
  Outcome outcome;
  for (int i = 1; i <= 999; ++i) outcome.latencies_ns.push_back(i);
  const Sample sample{.question = Question::latency, .size = 64, .messages = 999};
  EXPECT_EQ(rows_of(false, sample, {outcome}).count("ns_p99.9"), 0U);
  EXPECT_EQ(rows_of(false, sample, {outcome}).count("ns_p99"), 1U);
  outcome.latencies_ns.push_back(5000);
  EXPECT_DOUBLE_EQ(rows_of(false, sample, {outcome}).at("ns_p99.9").median, 999);
}

TEST(Rows, WhereOnlyTheMeanLatencyIsKnownThereIsNothingElse) {
  const Sample sample{.question = Question::latency, .size = 64, .messages = 4};
  auto rows = rows_of(false, sample, {{.latencies_ns = {10, 20, 30, 100}}});
  EXPECT_DOUBLE_EQ(rows.at("ns_mean").median, 40);
  EXPECT_EQ(rows.count("ns_p50"), 1U);
  rows = rows_of(false, sample, {{.mean_latency_ns = 40}, {.mean_latency_ns = 50}, {.mean_latency_ns = 90}});
  EXPECT_DOUBLE_EQ(rows.at("ns_mean").median, 50);
  EXPECT_EQ(rows.size(), 1U);
  rows = rows_of(false, sample, {{.latencies_ns = {10, 20}}, {.mean_latency_ns = 50}});
  EXPECT_EQ(rows.size(), 1U);
}

TEST(Rows, PercentileTakesAValueThatWasMeasured) {
  const std::vector<double> one{7};
  EXPECT_DOUBLE_EQ(percentile(one, 0.5), 7);
  EXPECT_DOUBLE_EQ(percentile(one, 1), 7);
  const std::vector<double> four{1, 2, 3, 10};
  EXPECT_DOUBLE_EQ(percentile(four, 0.5), 2);
  EXPECT_DOUBLE_EQ(percentile(four, 0.99), 10);
  EXPECT_THROW((void)percentile({}, 0.5), std::invalid_argument);
}

}  // namespace
}  // namespace wherry::bench
