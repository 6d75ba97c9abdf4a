// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace wherry::file::mapped {

/// Blocks all signals of this thread while it lives: a handler could wait for the thread that it interrupts, or leave
/// by a jump. No guarded copy is allowed meanwhile. Uses the system call, since the C library's functions leave out the
/// signal of pthread_cancel.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    const std::uint64_t all = ~std::uint64_t{0};
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
  }
  ~SignalsBlocked() { ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  std::uint64_t before_ = 0;
};

}  // namespace wherry::file::mapped
