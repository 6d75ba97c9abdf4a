// SPDX-License-Identifier: Apache-2.0
#include "base/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace wherry {

void reserve_standard_descriptors() noexcept {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // O_PATH: neither readable nor writable, and possible in every sandbox. The lowest free number is this one.
    if (::open("/", O_PATH | O_CLOEXEC) != number) return;
  }
}

std::string flush_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0) return std::system_category().message(errno);
  if (failed_before) return "a part of it was lost";
  // NFS, CIFS and FUSE report errors at each close of a descriptor, so a copy is closed. Number 1 itself stays open.
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) return std::system_category().message(errno);
  return {};
}

}  // namespace wherry
