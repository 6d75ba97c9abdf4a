// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <system_error>

namespace wherry::bench {

/// Throws std::system_error with `what` unless it holds; for calls that set errno.
inline void check(bool holds, const char* what) {
  if (!holds) throw std::system_error(errno, std::system_category(), what);
}

}  // namespace wherry::bench
