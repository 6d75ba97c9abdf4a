// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wherry::file {

/// When that process started, as the kernel counts it (field 22 of /proc/PID/stat), which with its number tells it from
/// all others. 0: it cannot be told.
std::uint64_t process_start(pid_t pid);

}  // namespace wherry::file
