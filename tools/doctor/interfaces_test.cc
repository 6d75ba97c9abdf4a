// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "doctor/check.hpp"

namespace wherry::tools::doctor {
namespace {

/// While one exists, a signal interrupts system calls every 50 us.
class Interrupted {
 public:
  Interrupted() {
    struct sigaction handler{};
    handler.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &handler, &before_);
    constexpr timeval kOften{.tv_sec = 0, .tv_usec = 50};
    const itimerval timer{.it_interval = kOften, .it_value = kOften};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  Interrupted(const Interrupted&) = delete;
  Interrupted& operator=(const Interrupted&) = delete;
  ~Interrupted() {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};

TEST(DoctorInterfaces, ASignalEndsNoWaitForAHelper) {
  const Verdict copying = check_peer_copy().verdict;
  const Verdict lending = check_lending().verdict;
  for (int i = 0; i < 20; ++i) {
    const Interrupted often;
    EXPECT_EQ(check_peer_copy().verdict, copying);
    EXPECT_EQ(check_lending().verdict, lending);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a helper was left";
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace wherry::tools::doctor
