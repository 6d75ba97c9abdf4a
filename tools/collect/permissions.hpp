// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

namespace wherry::tools {

/// The mode bits that the collector keeps. Not setuid and setgid, because the owner here is another user.
inline constexpr mode_t kPermissions = 01777;

/// Whether this process may list the directory and create names in it. `directory` may be O_PATH. Sets errno if not.
inline bool may_store(int directory) { return ::faccessat(directory, ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0; }

}  // namespace wherry::tools
