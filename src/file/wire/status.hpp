// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Status of the file that a descriptor refers to, also one opened with O_PATH. Returns 0 or an errno value.
int status_of(int descriptor, layout::FileStatus& status);
/// As above for a name in a directory. Follows no symbolic link and triggers no automount.
int status_of(int directory, const char* name, layout::FileStatus& status);
int file_system_of(int descriptor, layout::FileSystemStatus& status);

/// Converts to the form of utimensat. False if the nanoseconds are invalid.
bool to_timespec(const layout::FileTime& time, timespec& result);

/// The set-user-ID and set-group-ID bits of a mode that a write drops.
/// @param by  kFileWriteBy...
std::uint32_t bits_dropped(std::uint32_t mode, std::uint32_t by);

/// Nanoseconds since 1970.
std::uint64_t nanoseconds_of(const layout::FileTime& time);

}  // namespace wherry::file
