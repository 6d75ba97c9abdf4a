// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>

#include "file/wire/layout/wire.hpp"

namespace wherry::file::mount {

/// Attributes as programs see them. Inode numbers of other file systems below the served directory are changed, so that
/// two files of the mount do not have the same number by chance.
/// @param device  of the served directory
struct stat stat_of(const layout::FileStatus& status, std::uint64_t device);
std::uint64_t inode_of(std::uint64_t inode, std::uint64_t own_device, std::uint64_t device);
struct statvfs statvfs_of(const layout::FileSystemStatus& status);

/// Converts flags of open(2) to the server's, for a name whose symbolic links are resolved.
std::uint32_t open_flags_of(int flags);

}  // namespace wherry::file::mount
