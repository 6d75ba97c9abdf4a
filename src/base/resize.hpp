// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace wherry {

/// ftruncate for memory files. Beyond the limit of file sizes (ulimit -f) it fails with EFBIG; ftruncate itself would
/// end the process by SIGXFSZ.
inline int resize(int file, std::uint64_t bytes) noexcept {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur) {
    errno = EFBIG;
    return -1;
  }
  return ::ftruncate(file, static_cast<off_t>(bytes));
}

/// Returns the advice for a failed resize; `otherwise` if the cause is not the limit.
inline const char* advice_for_resize(int error, const char* otherwise) noexcept {
  return error == EFBIG ? "raise the limit of file sizes (ulimit -f), or ask for less (WHERRY_RING, WHERRY_POOL)"
                        : otherwise;
}

}  // namespace wherry
