// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/scoped_environment.hpp"

namespace wherry::log {
namespace {

class Log : public ::testing::Test {
 protected:
  ~Log() override { set_level(before_); }

  static std::string written(Level level, std::string_view text) {
    ::testing::internal::CaptureStderr();
    write(level, text);
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  Level before_ = level();
};

TEST_F(Log, ALineNamesProcessNodeAndLevel) {
  const ScopedEnvironment node("WHERRY_NODE", "5");
  set_level(Level::warning);
  EXPECT_EQ(written(Level::error, "lost"), "wherry[" + std::to_string(getpid()) + "] node 5 error: lost\n");
}

TEST_F(Log, WritesLinesUpToItsLevelOnly) {
  set_level(Level::info);
  EXPECT_NE(written(Level::info, "seen"), "");
  EXPECT_EQ(written(Level::debug, "not seen"), "");
  set_level(Level::error);
  EXPECT_EQ(written(Level::warning, "not seen"), "");
}

TEST_F(Log, KeepsErrno) {
  set_level(Level::error);
  errno = EXDEV;
  ASSERT_NE(written(Level::error, "x"), "");
  ::testing::internal::CaptureStderr();
  errno = EXDEV;
  write(Level::error, "x");
  EXPECT_EQ(errno, EXDEV);
  ::testing::internal::GetCapturedStderr();
}

TEST(LogDeathTest, LevelComesFromTheEnvironmentAtFirstUse) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const ScopedEnvironment set("WHERRY_LOG", "debug");
  EXPECT_EXIT(_exit(level() == Level::debug ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(LogDeathTest, AnInvalidLevelCountsAsTheDefault) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const ScopedEnvironment set("WHERRY_LOG", "loud");
  EXPECT_EXIT(_exit(level() == Level::warning ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wherry::log
