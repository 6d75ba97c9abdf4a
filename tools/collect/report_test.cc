// SPDX-License-Identifier: Apache-2.0
#include "collect/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace wherry::tools {
namespace {

ShipperReport session(SessionEnd end, std::uint64_t failures = 0) {
  ShipperReport report;
  report.label = std::string(200, 'x');
  report.end = end;
  report.stored = {.files = 2, .directories = 1, .symlinks = 0, .bytes = 10};
  for (std::uint64_t i = 0; i < failures; ++i) report.add_failure({std::string(1000, 'p'), "refused"});
  report.refused_paths = failures;
  report.begun_paths = report.stored.paths() + failures;
  return report;
}

TEST(CollectReport, CountsEverySessionAndKeepsABoundedNumber) {
  CollectReport report;
  constexpr std::uint64_t kSessions = 5000;
  for (std::uint64_t i = 0; i < kSessions; ++i) {
    report.add(session(SessionEnd::complete));
    report.add(session(SessionEnd::died));
  }
  EXPECT_EQ(report.shippers.size(), CollectReport::kKeptComplete + CollectReport::kKeptIncomplete);
  EXPECT_EQ(report.shippers_left_out, 2 * kSessions - report.shippers.size());
  EXPECT_EQ(report.stored.files, 4 * kSessions);
  EXPECT_EQ(report.stored.bytes, 20 * kSessions);
  EXPECT_EQ(report.to_json()["shippers_left_out"], report.shippers_left_out);
  EXPECT_NE(report.to_text().find("from 10000 shippers"), std::string::npos);
  EXPECT_NE(report.to_text().find("and 4000 shippers more were not complete"), std::string::npos);
  EXPECT_FALSE(report.complete());
}

TEST(CollectReport, OneBadSessionAmongMoreThanAreKeptIsNotForgotten) {
  CollectReport report;
  for (std::uint64_t i = 0; i < CollectReport::kKeptComplete + 1; ++i) report.add(session(SessionEnd::complete));
  EXPECT_TRUE(report.complete());
  report.add(session(SessionEnd::refused));
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(report.shippers.back().end, SessionEnd::refused);
}

TEST(CollectReport, WhatWasStoredRefusedAndFailedIsAllThatThereWas) {
  CollectReport report;
  ShipperReport died = session(SessionEnd::died, 2);
  died.begun_paths += 1;
  died.incomplete_file = "big";
  ShipperReport refused = session(SessionEnd::refused, 7);
  refused.said_goodbye = true;
  refused.shipper_failures = 4;
  report.add(died);
  report.add(refused);
  report.add(session(SessionEnd::complete));
  EXPECT_EQ(report.paths.stored, 9U);
  EXPECT_EQ(report.paths.refused, 9U);
  EXPECT_EQ(report.paths.failed, 5U);
  EXPECT_NE(
      report.to_text().find("3 shippers: 1 complete, 1 refused, 1 died\n23 paths: 9 stored, 9 refused, 5 failed\n"),
      std::string::npos)
      << report.to_text();
  const auto json = report.to_json();
  EXPECT_EQ(json["sessions"]["all"], 3);
  EXPECT_EQ(json["paths"]["all"], 23);
}

/// A directory whose final mode could not be set is stored, and counts once.
TEST(CollectReport, AProblemWithWhatIsStoredIsNoPathMore) {
  ShipperReport shipper = session(SessionEnd::refused);
  shipper.said_goodbye = true;
  shipper.add_failure({"directory", "no mode"});
  EXPECT_EQ(shipper.paths().all(), 3U);
  EXPECT_NE(shipper.to_text().find("directory (no mode)"), std::string::npos);
}

TEST(ShipperReport, ShowsABoundedPartOfWhatWasRefused) {
  const std::string text = session(SessionEnd::refused, 7).to_text();
  EXPECT_NE(text.find("; stored 2 files, 10 B; 7 paths refused: "), std::string::npos) << text;
  EXPECT_NE(text.find(" and 2 more"), std::string::npos) << text;
  EXPECT_LT(text.size(), 2000U);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(CollectReport, TheFailuresOfAllShippersTogetherAreBounded) {
  CollectReport report;
  for (int i = 0; i < 20; ++i) report.add(session(SessionEnd::refused, ShipperReport::kKeptFailures));
  std::size_t kept = 0;
  for (const ShipperReport& shipper : report.shippers) kept += shipper.failures.size();
  EXPECT_EQ(kept, CollectReport::kKeptFailures);
  EXPECT_EQ(report.shippers.back().failure_count, ShipperReport::kKeptFailures);
}

}  // namespace
}  // namespace wherry::tools
