// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace wherry::file::mapped {

/// Blocks all signals but SIGBUS and SIGSEGV while it lives: a handler might wait for the thread that it interrupted.
/// A system call, as the C library's functions leave out the signal of pthread_cancel.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    const std::uint64_t most = ~(std::uint64_t{1} << (SIGBUS - 1) | std::uint64_t{1} << (SIGSEGV - 1));
    ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &most, &before_, sizeof most);
  }
  ~SignalsBlocked() { ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  std::uint64_t before_ = 0;
};

}  // namespace wherry::file::mapped
