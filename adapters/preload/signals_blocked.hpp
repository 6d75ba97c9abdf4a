// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>

#include "next.hpp"

#include <unistd.h>

namespace wherry::preload {

/// No handler runs while an object of this class lives: one might wait for the thread that it has interrupted. The C
/// library's own calls leave out the signal of pthread_cancel, so these are the kernel's.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    const std::uint64_t all = ~std::uint64_t{0};
    set(&all, &before_);
  }
  ~SignalsBlocked() { set(&before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  static void set(const std::uint64_t* mask, std::uint64_t* before) {
    WHERRY_NEXT(syscall, SYS_rt_sigprocmask, SIG_SETMASK, mask, before, sizeof(std::uint64_t));
  }
  std::uint64_t before_ = 0;
};

}  // namespace wherry::preload
