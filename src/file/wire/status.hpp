// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// What a descriptor, also one that only names, names: 0 or an errno value.
int status_of(int descriptor, layout::FileStatus& status);
/// Of a name in a directory; a symbolic link is not followed, and nothing is mounted.
int status_of(int directory, const char* name, layout::FileStatus& status);
int file_system_of(int descriptor, layout::FileSystemStatus& status);

/// As utimensat takes it. False if the nanoseconds make no sense.
bool to_timespec(const layout::FileTime& time, timespec& result);

/// The set-user-ID and set-group-ID bits of a mode that a write drops.
/// @param by  kFileWriteBy...
std::uint32_t bits_dropped(std::uint32_t mode, std::uint32_t by);

/// Since 1970.
std::uint64_t nanoseconds_of(const layout::FileTime& time);

}  // namespace wherry::file
