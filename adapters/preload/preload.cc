// SPDX-License-Identifier: Apache-2.0
//
// What happens when the library is loaded, before the program begins.
#include <sys/stat.h>
#include <unistd.h>

#include "directories.hpp"
#include "environment.hpp"
#include "marks.hpp"

using namespace wherry::preload;

namespace {

/// Without an entry for the descriptor: that costs each process another page.
bool may_be_cached(int fd) {
  struct stat status{};
  return fstat(fd, &status) == 0 && on_cached_device(status);
}

__attribute__((constructor)) void loaded() {
  read_environment();
  if (!any_directories()) return;
  keep_environment();
  if (may_be_cached(STDOUT_FILENO) || may_be_cached(STDERR_FILENO)) mark_standard_streams();
}

}  // namespace
