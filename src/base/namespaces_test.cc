// SPDX-License-Identifier: Apache-2.0
#include "base/namespaces.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "base/child_process.hpp"

namespace wherry {
namespace {

TEST(Namespaces, HaveTheNumberThatTheKernelShows) {
  const std::string link = "net:[" + std::to_string(namespace_number("net")) + "]";
  char text[64] = {};
  ASSERT_GT(::readlink("/proc/self/ns/net", text, sizeof text - 1), 0);
  EXPECT_EQ(text, link);
  EXPECT_EQ(namespace_number("net", std::to_string(::getpid())), namespace_number("net"));
  EXPECT_EQ(namespace_number("no-such-kind"), 0U);
  EXPECT_EQ(is_initial_namespace("no-such-kind"), std::nullopt);
}

TEST(Namespaces, ThatWereMadeLaterAreNotTheInitialOnes) {
  const auto later = [] {
    const auto before = namespace_number("net");
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0) return true;  // not permitted here
    bool all = namespace_number("net") != before;
    for (const char* kind : {"user", "net", "ipc"}) all = all && is_initial_namespace(kind) == false;
    return all;
  };
  EXPECT_EQ(Child(later).wait(), 0);
}

}  // namespace
}  // namespace wherry
