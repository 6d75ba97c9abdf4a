// SPDX-License-Identifier: Apache-2.0
// For tests: a process that can open nothing.
#pragma once

#include <sys/resource.h>

#include "tests/common/sanitizer.hpp"

namespace wherry {

/// While it exists nothing can be opened in this process; what is open stays open.
class NoDescriptors {
 public:
  /// Checks that AddressSanitizer's build makes need some.
  static constexpr bool kPossible = WHERRY_ADDRESS_SANITIZER == 0;

  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace wherry
