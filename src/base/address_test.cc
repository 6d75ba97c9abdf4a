// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/scoped_environment.hpp"

namespace wherry {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    Address::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EINVAL) << text;
    return error.what();
  }
  return "accepted";
}

TEST(Address, ReadsNodeAndPort) {
  const Address address = Address::parse("wherry://3:2000");
  EXPECT_EQ(address, (Address{"", 3, 2000}));
}

TEST(Address, ReadsTheLargestNodeAndPort) {
  EXPECT_EQ(Address::parse("wherry://65535:65535"), (Address{"", 65535, 65535}));
}

TEST(Address, StarsAreEmpty) {
  EXPECT_EQ(Address::parse("wherry://*:*"), (Address{"", {}, {}}));
  EXPECT_EQ(Address::parse("wherry://*:7"), (Address{"", {}, 7}));
  EXPECT_EQ(Address::parse("wherry://7:*"), (Address{"", 7, {}}));
}

TEST(Address, ReadsTheFabric) {
  EXPECT_EQ(Address::parse("wherry+inproc-put://0:1").fabric, "inproc-put");
  EXPECT_EQ(Address::parse("wherry+faulty+shm://0:1").fabric, "faulty+shm");
}

TEST(Address, WrittenTextReadsBackTheSame) {
  for (const char* text : {"wherry://0:1", "wherry://*:*", "wherry+shm://65535:*", "wherry+faulty+inproc://*:65535"}) {
    EXPECT_EQ(Address::parse(text).to_string(), text);
  }
}

TEST(Address, RefusalQuotesTheTextAndShowsAnExample) {
  EXPECT_THAT(refusal("http://0:1"), HasSubstr("\"http://0:1\""));
  EXPECT_THAT(refusal("http://0:1"), HasSubstr("looks like wherry://0:2000"));
}

TEST(Address, RefusalSaysWhichPartIsWrong) {
  for (const char* text : {"", "0:2000", "wherry:/0:1", "tcp://0:1", "wherryx://0:1", "wherr://0:1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("must begin with wherry://")) << text;
  }
  for (const char* text : {"wherry+://0:1", "wherry+SHM://0:1", "wherry+a b://0:1", "wherry+a/b://0:1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("fabric's name")) << text;
  }
  for (const char* text : {"wherry://0", "wherry://"}) EXPECT_THAT(refusal(text), HasSubstr("a : and a port")) << text;
  for (const char* text : {"wherry://:1", "wherry://-1:1", "wherry://65536:1", "wherry://x:1", "wherry:// 1:1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the node must be")) << text;
  }
  for (const char* text : {"wherry://0:", "wherry://0:0", "wherry://0:65536", "wherry://0:1x", "wherry://0:1:2"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the port must be")) << text;
  }
}

TEST(OwnNode, IsTheHostUnlessTheEnvironmentSaysOtherwise) {
  const ScopedEnvironment unset("WHERRY_NODE", nullptr);
  EXPECT_EQ(own_node(), 0);
  const ScopedEnvironment card("WHERRY_NODE", "12");
  EXPECT_EQ(own_node(), 12);
}

TEST(OwnNode, RefusesWhatIsNoNode) {
  for (const char* value : {"65536", "-1", "host", "1 "}) {
    const ScopedEnvironment node("WHERRY_NODE", value);
    EXPECT_THROW(own_node(), Error) << value;
  }
}

}  // namespace
}  // namespace wherry
