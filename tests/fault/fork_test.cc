// SPDX-License-Identifier: Apache-2.0
// A process that forks while it has streams.
#include <gtest/gtest.h>
#include <unistd.h>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"

namespace wherry {
namespace {

TEST(Fork, AChildThatDestroysItsCopyEndsNothing) {
  Listener listener = listen("wherry://*:*");
  Connecting connecting = start_connect(listener.local().to_string());
  Stream acceptor = listener.accept();
  Stream connector = std::move(*connecting.try_finish());
  Child child([&] {
    acceptor = Stream();
    connector.close();
    return true;
  });
  ASSERT_EQ(child.wait(), 0);
  const std::byte sent{42};
  std::byte received{};
  ASSERT_TRUE(acceptor.send(std::span(&sent, 1)).ok());
  ASSERT_TRUE(connector.receive(std::span(&received, 1)).ok());
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(connector.try_receive(std::span(&received, 1)).would_block()) << "no end has come";
}

}  // namespace
}  // namespace wherry
