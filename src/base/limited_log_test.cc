// SPDX-License-Identifier: Apache-2.0
#include "base/limited_log.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace wherry::log {
namespace {

using std::chrono::nanoseconds;

std::uint64_t now_ns = 0;

constexpr LimitedLog::Limit kTwoInTen{.lines = 2, .period = nanoseconds(10'000'000)};

class LimitedLogTest : public ::testing::Test {
 protected:
  LimitedLogTest() {
    now_ns = 1'000'000'000;
    set_level(Level::warning);
    limited_.emplace("server", kTwoInTen, [] { return now_ns; });
  }
  ~LimitedLogTest() override { set_level(before_); }

  /// Returns what `body` writes, each line from its level on.
  template <class Body>
  static std::vector<std::string> lines_of(Body body) {
    ::testing::internal::CaptureStderr();
    body();
    const std::string text = ::testing::internal::GetCapturedStderr();
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      lines.push_back(line.substr(line.find(' ', line.find("node ") + 5) + 1));
      begin = end + 1;
    }
    return lines;
  }
  std::vector<std::string> lines_of(int count, Level level = Level::warning) {
    return lines_of([&] {
      for (int i = 0; i < count; ++i) limited_->write(level, std::to_string(i));
    });
  }

  using Lines = std::vector<std::string>;
  std::optional<LimitedLog> limited_;

 private:
  Level before_ = level();
};

TEST_F(LimitedLogTest, InEachPeriodSomeLinesAreWrittenAndTheOthersCounted) {
  EXPECT_EQ(lines_of(5), (Lines{"warning: 0", "warning: 1"}));
  now_ns += 9'999'999;
  EXPECT_EQ(lines_of(1), Lines{});
  now_ns += 1;
  EXPECT_EQ(lines_of(2), (Lines{"warning: server: 4 more lines were left out", "warning: 0", "warning: 1"}));
  now_ns += 10'000'000;
  EXPECT_EQ(lines_of(1), Lines{"warning: 0"});
}

TEST_F(LimitedLogTest, WhatWasLeftOutIsToldAtTheEndOfThePeriodToo) {
  const auto report = [this] { limited_->report_if_due(); };
  lines_of(2);
  EXPECT_EQ(limited_->report_due_in_ms(), -1);
  lines_of(3);
  EXPECT_EQ(limited_->report_due_in_ms(), 10);
  now_ns += 9'500'000;
  EXPECT_EQ(limited_->report_due_in_ms(), 1);
  EXPECT_EQ(lines_of(report), Lines{});
  now_ns += 1'000'000;
  EXPECT_EQ(limited_->report_due_in_ms(), 0);
  EXPECT_EQ(lines_of(report), Lines{"warning: server: 3 more lines were left out"});
  EXPECT_EQ(limited_->report_due_in_ms(), -1);
  EXPECT_EQ(lines_of(report), Lines{});
}

TEST_F(LimitedLogTest, TheDestructorTellsTheRest) {
  lines_of(3);
  EXPECT_EQ(lines_of([this] { limited_.reset(); }), Lines{"warning: server: 1 more line was left out"});
}

TEST_F(LimitedLogTest, LinesBelowTheLevelAreNotCounted) {
  EXPECT_EQ(lines_of(5, Level::info), Lines{});
  EXPECT_EQ(limited_->report_due_in_ms(), -1);
  EXPECT_EQ(lines_of(3, Level::error), (Lines{"error: 0", "error: 1"}));
  EXPECT_EQ(lines_of([this] { limited_.reset(); }), Lines{"error: server: 1 more line was left out"});
}

TEST_F(LimitedLogTest, ThreadsTogetherLoseNoLineFromTheCount) {
  const auto lines = lines_of([this] {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([this] {
        for (int i = 0; i < 500; ++i) limited_->write(Level::warning, "line");
      });
    }
    for (std::thread& thread : threads) thread.join();
    limited_.reset();
  });
  EXPECT_EQ(lines, (Lines{"warning: line", "warning: line", "warning: server: 1998 more lines were left out"}));
}

}  // namespace
}  // namespace wherry::log
