// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/select.h>

#include <utility>

#include "base/unique_fd.hpp"

namespace wherry {

/// The same file under a number that select() cannot name: those below are few, and for files that a program waits for
/// itself. As it is where the limit of open files does not allow such numbers.
inline UniqueFd beyond_select(UniqueFd file) {
  if (!file.valid() || file.get() >= FD_SETSIZE) return file;
  const int far = ::fcntl(file.get(), F_DUPFD_CLOEXEC, FD_SETSIZE);
  return far < 0 ? std::move(file) : UniqueFd(far);
}

}  // namespace wherry
