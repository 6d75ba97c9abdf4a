// SPDX-License-Identifier: Apache-2.0
#include "base/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include <wherry/error.hpp>

namespace wherry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

auto all_of(std::string_view text) { return Hosts::parse(text, "h").all(); }

std::string error_of(std::string_view text) {
  try {
    (void)Hosts::parse(text, "h");
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EINVAL);
    return error.what();
  }
  ADD_FAILURE() << "no error: " << text;
  return "";
}

TEST(Hosts, EachLineIsANode) {
  EXPECT_THAT(all_of("alpha\n\n# comment\n  beta slots=4 max_slots=8 # two\ngamma:2\nuser@delta"),
              ElementsAre(Pair(0, "alpha"), Pair(1, "beta"), Pair(2, "gamma"), Pair(3, "delta")));
}

TEST(Hosts, ARangeIsSeveralNodesAndTheNextLineFollowsIt) {
  EXPECT_THAT(all_of("4-6 alpha slots=2\nbeta\n0 gamma\r\n"),
              ElementsAre(Pair(0, "gamma"), Pair(4, "alpha"), Pair(5, "alpha"), Pair(6, "alpha"), Pair(7, "beta")));
}

TEST(Hosts, AHostMayBeAnAddress) {
  EXPECT_THAT(
      all_of("192.0.2.1:8\n2001:db8::1\n[2001:db8::2]\nfe80::1%eth0"),
      ElementsAre(Pair(0, "192.0.2.1"), Pair(1, "2001:db8::1"), Pair(2, "2001:db8::2"), Pair(3, "fe80::1%eth0")));
}

TEST(Hosts, ANodeThatIsNotListedHasNoHost) {
  const Hosts hosts = Hosts::parse("1 alpha\n", "h");
  EXPECT_EQ(hosts.host_of(0), nullptr);
  ASSERT_NE(hosts.host_of(1), nullptr);
  EXPECT_EQ(*hosts.host_of(1), "alpha");
}

TEST(Hosts, ErrorsSayTheLine) {
  EXPECT_THAT(error_of("alpha\n3-2 beta"), HasSubstr("h:2"));
  EXPECT_THAT(error_of("alpha\n3-2 beta"), HasSubstr("\"3-2\" ends before it begins"));
  EXPECT_THAT(error_of("\n\n65536 beta"), HasSubstr("h:3"));
  EXPECT_THAT(error_of("4-7"), HasSubstr("no host follows \"4-7\""));
  EXPECT_THAT(error_of("0 alpha\n0 beta"), HasSubstr("h:2"));
  EXPECT_THAT(error_of("0 alpha\n0 beta"), HasSubstr("node 0 has a host already"));
  EXPECT_THAT(error_of("al/pha"), HasSubstr("is not the name or address of a host"));
  EXPECT_THAT(error_of("[::1"), HasSubstr("lacks a ]"));
  EXPECT_THAT(error_of("65535 alpha\nbeta"), HasSubstr("h:2"));
  EXPECT_THAT(error_of("--\n"), HasSubstr("is not a node"));
}

TEST(Hosts, AFileThatIsNotThereIsAnError) {
  try {
    (void)Hosts::read("/nonexistent/hosts");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_THAT(error.what(), HasSubstr("WHERRY_HOSTS"));
  }
  EXPECT_THROW((void)Hosts::read("/tmp"), Error);
}

}  // namespace
}  // namespace wherry
