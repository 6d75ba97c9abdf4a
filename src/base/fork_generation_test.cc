// SPDX-License-Identifier: Apache-2.0
#include "base/fork_generation.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "base/child_process.hpp"

namespace wherry {
namespace {

TEST(ForkGeneration, IsOneNumberForAllThreadsAndForGood) {
  const std::uint64_t own = fork_generation();
  EXPECT_NE(own, 0U);
  std::uint64_t others = 0;
  std::thread([&] { others = fork_generation(); }).join();
  EXPECT_EQ(others, own);
  EXPECT_EQ(fork_generation(), own);
}

TEST(ForkGeneration, OfAChildIsAnotherThanThatOfEachAncestor) {
  const std::uint64_t own = fork_generation();
  Child child([own] {
    const std::uint64_t childs = fork_generation();
    Child grandchild([&] { return fork_generation() != childs && fork_generation() != own; });
    return childs != own && grandchild.wait() == 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(fork_generation(), own);
}

TEST(ForkGeneration, OfAChildThatAsksFirstIsAnotherThanThatOfTheAncestorsThatNeverAsked) {
  Child child([] {
    const Origin origin;
    Child grandchild([&] { return origin.inherited(); });
    return grandchild.wait() == 0 && !origin.inherited();
  });
  EXPECT_EQ(child.wait(), 0);
}

/// Forks as programs do that have their own process library. A child that is process 1 of a namespace, as its parent
/// is, also has its parent's process number.
TEST(ForkGeneration, OfAChildThatTheCLibraryKnowsNothingOfIsAnother) {
  const Origin origin;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(origin.inherited() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace wherry
