// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/select.h>

#include <utility>

#include "base/unique_fd.hpp"

namespace wherry {

/// Moves a descriptor to a number of at least FD_SETSIZE, which select() cannot use. The lower numbers are few, and a
/// program needs them for files that it waits for itself. Returns `file` unchanged if the limit of open files does not
/// allow such numbers.
inline UniqueFd move_above_fd_setsize(UniqueFd file) {
  if (!file.valid() || file.get() >= FD_SETSIZE) return file;
  const int far = ::fcntl(file.get(), F_DUPFD_CLOEXEC, FD_SETSIZE);
  return far < 0 ? std::move(file) : UniqueFd(far);
}

}  // namespace wherry
