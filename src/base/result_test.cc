// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <sstream>
#include <type_traits>

#include <wherry/result.hpp>

namespace wherry {
namespace {

std::string printed(const Result& result) {
  std::ostringstream text;
  text << result;
  return text.str();
}

TEST(Result, IsTrueOnlyIfBytesWereMoved) {
  EXPECT_TRUE(Result::moved(1));
  EXPECT_TRUE(Result::moved(0));
  EXPECT_FALSE(Result::blocked());
  EXPECT_FALSE(Result::at_end());
  EXPECT_FALSE(Result::failure(EPIPE, 5));
}

TEST(Result, IsNotMistakenForANumber) {
  EXPECT_FALSE((std::is_convertible_v<Result, bool>));
  EXPECT_FALSE((std::is_convertible_v<Result, int>));
}

TEST(Result, SaysWhatTheCallCameTo) {
  EXPECT_EQ(printed(Result::moved(4096)), "4096 bytes");
  EXPECT_EQ(printed(Result::moved(1)), "1 byte");
  EXPECT_EQ(printed(Result::blocked()), "would block");
  EXPECT_EQ(printed(Result::at_end()), "end");
  EXPECT_EQ(printed(Result::failure(EPIPE)), "Broken pipe (EPIPE)");
  EXPECT_EQ(printed(Result::failure(ETIMEDOUT, 12)), "Connection timed out (ETIMEDOUT) after 12 bytes");
}

TEST(Result, OfAnUnknownErrorIsPrintedToo) { EXPECT_EQ(printed(Result::failure(4711)), "Unknown error 4711"); }

}  // namespace
}  // namespace wherry
