// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <iostream>
#include <utility>

#include <gtest/gtest.h>

namespace wherry::conformance {

/// A forked process that plays one side of a test. Killed at the end of the scope if it still runs.
class ChildProcess {
 public:
  /// `play` runs in the child; gtest failures and exceptions in it make it exit with 1. It must not start threads:
  /// a sanitizer cannot follow those into a fork.
  explicit ChildProcess(const std::function<void()>& play) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(run(play));
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill(); }

  [[nodiscard]] pid_t pid() const { return pid_; }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    exit_status();
  }

  /// Waits for its end. -1: it was killed.
  int exit_status() {
    int status = 0;
    const pid_t ended = ::waitpid(std::exchange(pid_, -1), &status, 0);
    return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static int run(const std::function<void()>& play) {
    try {
      play();
    } catch (const std::exception& error) {
      std::cerr << "in the child process: " << error.what() << '\n';
      return 1;
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
  }

  pid_t pid_;
};

}  // namespace wherry::conformance
