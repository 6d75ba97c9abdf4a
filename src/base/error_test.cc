// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include <wherry/error.hpp>

namespace wherry {
namespace {

TEST(Error, TextReadsOperationAddressReasonAdvice) {
  const Error error(ECONNREFUSED, "connect", "wherry://0:2000", "start the listener first");
  EXPECT_STREQ(error.what(), "connect wherry://0:2000: Connection refused; start the listener first");
}

TEST(Error, TextLeavesOutWhatIsEmpty) {
  EXPECT_STREQ(Error(EINVAL, "configure", "", "").what(), "configure: Invalid argument");
  EXPECT_STREQ(Error(EINVAL, "configure", "", "use a number").what(), "configure: Invalid argument; use a number");
  EXPECT_STREQ(Error(EACCES, "listen", "wherry://0:1", "").what(), "listen wherry://0:1: Permission denied");
}

TEST(Error, CodeIsTheErrnoInTheSystemCategory) {
  const Error error(EADDRINUSE, "listen", "wherry://0:1", "choose another port");
  EXPECT_EQ(error.code(), std::error_code(EADDRINUSE, std::system_category()));
  EXPECT_EQ(error.code(), std::errc::address_in_use);
}

TEST(Error, PartsCanBeReadOnTheirOwn) {
  const Error error(EADDRINUSE, "listen", "wherry://0:1", "choose another port");
  EXPECT_EQ(error.operation(), "listen");
  EXPECT_EQ(error.address(), "wherry://0:1");
  EXPECT_EQ(error.advice(), "choose another port");
}

TEST(Error, IsCaughtAsSystemErrorWithItsWholeText) {
  try {
    throw Error(EIO, "read", "x", "retry");
  } catch (const std::system_error& error) {
    EXPECT_STREQ(error.what(), "read x: Input/output error; retry");
  }
}

}  // namespace
}  // namespace wherry
