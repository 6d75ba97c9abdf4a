// SPDX-License-Identifier: Apache-2.0
#include "wherry_address.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/scoped_environment.hpp"

namespace zmq {
namespace {

/// What check says, as errno; 0: the name will do.
int refusal(const char* name) {
  errno = 0;
  return wherry_address_t::check(name) == 0 ? 0 : errno;
}

std::string translated(std::string protocol, std::string path) {
  wherry_address_t::translate(protocol, path);
  return protocol + "://" + path;
}

TEST(ZmqAddress, OneConnectsToANodeAndAPort) {
  for (const char* name : {"0:2000", "65535:1"}) EXPECT_EQ(refusal(name), 0) << name;
}

TEST(ZmqAddress, NobodyConnectsToWhatIsLeftOpenOrIsNoNodeAndPort) {
  for (const char* name : {"*:2000", "3:*", "*:*", "", "0", ":", "0:", ":1", "0:0", "0:65536", "65536:1", "-1:1", "a:1",
                           "0:1:2", "0:1 ", "127.0.0.1:1", "0:*[1-2]"}) {
    EXPECT_EQ(refusal(name), EINVAL) << name;
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
