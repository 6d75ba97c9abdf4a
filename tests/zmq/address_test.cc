// SPDX-License-Identifier: Apache-2.0
#include "wherry_address.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/scoped_environment.hpp"

namespace zmq {
namespace {

std::string resolved(const char* name, bool local) {
  wherry_address_t address;
  errno = 0;
  if (address.resolve(name, local) != 0) return "errno " + std::to_string(errno);
  std::string text;
  EXPECT_EQ(address.to_string(text), 0);
  return text;
}

std::string translated(std::string protocol, std::string path) {
  wherry_address_t::translate(protocol, path);
  return protocol + "://" + path;
}

const std::string kInvalid = "errno " + std::to_string(EINVAL);

TEST(ZmqAddress, NodeAndPortAreTheSameForBothSides) {
  EXPECT_EQ(resolved("0:2000", true), "wherry://0:2000");
  EXPECT_EQ(resolved("65535:1", false), "wherry://65535:1");
}

TEST(ZmqAddress, OnlyWhoBindsMayLeaveNodeOrPortOpen) {
  for (const char* name : {"*:2000", "3:*", "*:*"}) {
    EXPECT_EQ(resolved(name, true), std::string("wherry://") + name);
    EXPECT_EQ(resolved(name, false), kInvalid);
  }
}

TEST(ZmqAddress, WhatIsNoNodeAndPortIsEinval) {
  for (const char* name :
       {"", "0", ":", "0:", ":1", "0:0", "0:65536", "65536:1", "-1:1", "a:1", "0:1:2", "0:1 ", "127.0.0.1:1"}) {
    EXPECT_EQ(resolved(name, true), kInvalid) << name;
    EXPECT_EQ(resolved(name, false), kInvalid) << name;
  }
}

TEST(ZmqAddress, ScifsNamesBecomeOurs) {
  EXPECT_EQ(translated("scif", "2000"), "wherry://*:2000");
  EXPECT_EQ(translated("scif", "1:2000"), "wherry://1:2000");
  EXPECT_EQ(translated("scif", "*"), "wherry://*:*");
}

TEST(ZmqAddress, OtherProtocolsStayWhatTheyAre) {
  EXPECT_EQ(translated("tcp", "127.0.0.1:2000"), "tcp://127.0.0.1:2000");
  EXPECT_EQ(translated("ipc", "2000"), "ipc://2000");
  EXPECT_EQ(translated("wherry", "2000"), "wherry://2000");
}

TEST(ZmqAddress, WhatWasBoundIsFoundByTheOwnNode) {
  const wherry::ScopedEnvironment node("WHERRY_NODE", "7");
  EXPECT_EQ(wherry_address_t::bound("*:2000"), "wherry://7:2000");
  EXPECT_EQ(wherry_address_t::bound("3:2000"), "wherry://3:2000");
  EXPECT_EQ(wherry_address_t::bound("nonsense"), "wherry://nonsense");
}

}  // namespace
}  // namespace zmq
