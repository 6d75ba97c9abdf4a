// SPDX-License-Identifier: Apache-2.0
#include "shortened.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "directories.hpp"
#include "file/mapped/truncations.hpp"
#include "stepping_aside.hpp"

namespace wherry::preload {
namespace {

bool may_be_read_in_place() { return any_directories() && !is_filtered(); }

void note(const struct stat& status) {
  if (on_cached_device(status)) file::mapped::note_truncation(status.st_dev, status.st_ino);
}

}  // namespace

void shortened(int fd) noexcept {
  if (!may_be_read_in_place()) return;
  const int error = errno;
  struct stat status{};
  if (fstat(fd, &status) == 0) note(status);
  errno = error;
}

void any_shortened() noexcept {
  if (may_be_read_in_place()) file::mapped::note_any_truncation();
}

void shortened(const char* path) noexcept {
  if (!may_be_read_in_place()) return;
  const int error = errno;
  struct stat status{};
  if (stat(path, &status) == 0) note(status);
  errno = error;
}

}  // namespace wherry::preload
