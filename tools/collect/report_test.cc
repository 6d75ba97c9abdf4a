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
