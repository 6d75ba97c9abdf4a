// SPDX-License-Identifier: Apache-2.0
// For tests: a process that can open nothing, or little.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include "base/unique_fd.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry {

/// While it exists only `more` descriptors can be opened in this process, or fewer; what is open stays open.
class NoDescriptors {
 public:
  /// Checks that AddressSanitizer's build makes need some.
  static constexpr bool kPossible = WHERRY_ADDRESS_SANITIZER == 0;

  explicit NoDescriptors(rlim_t more = 0) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    if (more != 0) few.rlim_cur = static_cast<rlim_t>(UniqueFd(::dup(STDIN_FILENO)).get()) + more;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace wherry
