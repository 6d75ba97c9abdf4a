// SPDX-License-Identifier: Apache-2.0
// What changes a whole process, as handlers of signals do, is tested in a child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace wherry::test {

/// Runs `body` in a forked child. Its failures are those of this test. `forks`: by ::_Fork no handlers of
/// pthread_atfork run.
template <class Body>
void in_child(Body body, pid_t (*forks)() = ::fork) {
  const pid_t child = forks();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_FALSE(WIFSIGNALED(status)) << "ended by signal " << WTERMSIG(status);
  ASSERT_EQ(WEXITSTATUS(status), 0) << "see the child's failures above";
}

}  // namespace wherry::test
