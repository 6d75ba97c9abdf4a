// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace wherry::tools {

/// The mode bits that the collector takes over. Not setuid and setgid: here the owner is another user.
inline constexpr mode_t kPermissions = 01777;

}  // namespace wherry::tools
