// SPDX-License-Identifier: Apache-2.0
// What the message suites share: a publisher joined to a subscriber on the fabric under test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include <wherry/wherry.hpp>

#include "base/scoped_environment.hpp"
#include "tests/common/pattern.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {

class MessageTest : public ::testing::TestWithParam<FabricUnderTest> {
 protected:
  MessageTest();

  [[nodiscard]] std::string address() const { return "wherry+" + std::string(GetParam().fabric) + "://*:*"; }

  const Pattern pattern_{13};

 private:
  ScopedEnvironment faults_;
};

/// Both the publisher's start_connect and the subscriber's are completed by admitting on both sides.
void meet(Publisher& publisher, Subscriber& subscriber, std::size_t subscribers = 1, std::size_t publishers = 1);
/// The subscriber connects to the publisher that listens.
void join(Publisher& publisher, Subscriber& subscriber);

/// Publishes `bytes` bytes that follow `pattern` from `position` on, and expects that to succeed.
void publish(Publisher& publisher, const Pattern& pattern, std::size_t bytes, std::uint64_t position = 0);
/// Takes one message and expects it to be those.
void expect_message(Subscriber& subscriber, const Pattern& pattern, std::size_t bytes, std::uint64_t position = 0);

/// A message of one number, for tests of which subscriber gets what.
Result publish_number(Publisher& publisher, std::uint64_t number, Timeout timeout = kTimeout);
Result try_publish_number(Publisher& publisher, std::uint64_t number);
std::uint64_t number_in(const Message& message);
/// UINT64_MAX if there is none.
std::uint64_t take_number(Subscriber& subscriber, Timeout timeout = kTimeout);

}  // namespace wherry::conformance
