// SPDX-License-Identifier: Apache-2.0
#include "top/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace wherry::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Reading many_endpoints(std::uint32_t count) {
  ProcessReading process;
  process.pid = 77;
  process.program = "worker";
  process.job = "night_shift";
  for (std::uint32_t i = 0; i < count; ++i) {
    EndpointReading endpoint;
    endpoint.record = i;
    endpoint.generation = 1;
    endpoint.local = Address{"", 1, {}};
    endpoint.peer = Address{"", 0, 2000};
    endpoint.peer_pid = 55;
    endpoint.fabric = "shm";
    endpoint.send_capacity = 1000;
    endpoint.send_fill = 250;
    process.endpoints.push_back(endpoint);
  }
  return {1'000'000'000, {process}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TopView, ShowsWhoTalksToWhom) {
  const Reading now = many_endpoints(1);
  const std::string text = top_text({}, now, 0, 0);
  EXPECT_THAT(text, HasSubstr("1 process, 1 endpoint:"));
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 4U);
  for (const char* part : {"77", "worker", "night_shift", "1:*", "0:2000 (55)", "shm", "25%"})
    EXPECT_THAT(lines[3], HasSubstr(part));
}

TEST(TopView, NamesTheHostOfAPeerElsewhere) {
  Reading now = many_endpoints(1);
  EndpointReading& endpoint = now.processes.front().endpoints.front();
  endpoint.peer_pid = 0;
  endpoint.peer_host = "beta";
  EXPECT_THAT(top_text({}, now, 0, 0), HasSubstr("  beta:0:2000  "));
  EXPECT_EQ(nlohmann::json::parse(top_json({}, now))["processes"][0]["endpoints"][0]["peer_host"], "beta");
  endpoint.peer_host = "2001:db8::2";
  EXPECT_THAT(top_text({}, now, 0, 0), HasSubstr("  [2001:db8::2]:0:2000  "));
}

TEST(TopView, WhatHappensSeldomIsNotShownAsNever) {
  Reading before = many_endpoints(1);
  Reading now = before;
  now.at_ns += 10'000'000'000;
  now.processes.front().endpoints.front().sends = 3;
  now.processes.front().endpoints.front().bytes_sent = 3;
  const std::string text = top_text(before, now, 0, 0);
  EXPECT_THAT(text, HasSubstr("0.3 B/s"));
  EXPECT_THAT(text, HasSubstr(" 0.3 "));
}

TEST(TopView, FitsTheScreenAndSaysWhatWasCut) {
  const Reading now = many_endpoints(50);
  const auto lines = lines_of(top_text({}, now, 20, 40));
  EXPECT_EQ(lines.size(), 20U);
  EXPECT_EQ(lines.back(), "and 34 more");
  for (const std::string& line : lines) EXPECT_LE(line.size(), 40U);
}

TEST(TopView, ShowsEveryEndpointWhereThereIsRoom) {
  const Reading now = many_endpoints(17);
  const auto lines = lines_of(top_text({}, now, 20, 0));
  EXPECT_EQ(lines.size(), 20U);
  EXPECT_THAT(lines.back(), Not(HasSubstr("more")));
}

TEST(TopView, SaysWhatAProcessCouldNotShow) {
  Reading now = many_endpoints(1);
  now.processes.front().endpoints_not_shown = 3;
  EXPECT_THAT(top_text({}, now, 0, 0), HasSubstr("3 more not shown"));
}

TEST(TopView, OfNothingIsOneLine) {
  EXPECT_EQ(lines_of(top_text({}, {}, 0, 0)).size(), 1U);
  EXPECT_TRUE(nlohmann::json::parse(top_json({}, {}))["processes"].empty());
}

TEST(TopView, JsonIsOneLineWithEveryCounter) {
  const Reading now = many_endpoints(2);
  const std::string text = top_json({}, now);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto process = nlohmann::json::parse(text)["processes"][0];
  EXPECT_EQ(process["pid"], 77);
  EXPECT_EQ(process["job"], "night_shift");
  ASSERT_EQ(process["endpoints"].size(), 2U);
  EXPECT_EQ(process["endpoints"][0]["peer"], "wherry://0:2000");
  EXPECT_EQ(process["endpoints"][0]["send_fill"], 250);
  EXPECT_EQ(process["endpoints"][0]["rates"]["wakes"], 0);
}

TEST(TopView, TextThatIsNotUtf8DoesNotBreakJson) {
  Reading now = many_endpoints(1);
  now.processes.front().program = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(top_json({}, now)));
}

Reading some_transfers(std::size_t count) {
  TransfersReading one;
  one.traits = {.kind = layout::TransferKind::miss, .bytes = 1 << 20, .in_order = true};
  one.host = {.calls = 70, .bytes = 70 << 20, .explored = 0, .estimate_ns = 250'000};
  one.kernel = {.calls = 1, .bytes = 1 << 20, .explored = 1, .estimate_ns = 700'000};
  ProcessReading process;
  process.pid = 77;
  process.program = "worker";
  process.transfers.assign(count, one);
  return {1'000'000'000, {process}};
}

TEST(TopView, ShowsWhichWayTransfersOfFilesTakeAndWhy) {
  const auto lines = lines_of(top_files_text(some_transfers(1), 0, 0));
  ASSERT_EQ(lines.size(), 2U);
  for (const char* part :
       {"77", "worker", "reads, missing", "in order", "free", "1024K", "70", "73.4 MB", "250.0", "700.0", " host"})
    EXPECT_THAT(lines[1], HasSubstr(part));
  EXPECT_THAT(top_files_text(many_endpoints(1), 0, 0), HasSubstr("no program chooses"));
}

TEST(TopView, SaysHowManyClassesOfTransfersWereCut) {
  const auto lines = lines_of(top_files_text(some_transfers(20), 10, 0));
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines.back(), "and 12 more");
}

TEST(TopView, ShowsTheWayOfMostCallsWhereOneWasNotMeasured) {
  Reading reading = some_transfers(1);
  TransfersReading& transfers = reading.processes.front().transfers.front();
  transfers.host.estimate_ns = 0;
  EXPECT_THAT(lines_of(top_files_text(reading, 0, 0))[1], HasSubstr(" host"));
  transfers.kernel.calls = 100;
  EXPECT_THAT(lines_of(top_files_text(reading, 0, 0))[1], HasSubstr(" mount"));
  const auto json = nlohmann::json::parse(top_json(reading, reading));
  EXPECT_EQ(json["processes"][0]["transfers"][0]["chosen"], "mount");
  EXPECT_EQ(json["processes"][0]["transfers"][0]["host"]["calls"], 70);
}

}  // namespace
}  // namespace wherry::tools
