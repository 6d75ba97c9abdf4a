// SPDX-License-Identifier: Apache-2.0
//
// The directories whose files are served: WHERRY_FILES as it was when the library was loaded.
#pragma once

#include <sys/stat.h>

#include <optional>

#include <wherry/file_path.hpp>

namespace wherry::preload {

using files::Path;

/// Reads WHERRY_FILES, WHERRY_FILE_PATH and WHERRY_FILE_PATHS. No other call; nothing is looked at yet.
void read_environment() noexcept;

/// Which way reads take: kernel, cache or automatic, by WHERRY_FILE_PATH.
Path chosen_path() noexcept;
/// Whether it depends on a file's name.
bool any_rules() noexcept;
/// Which way reads of a descriptor's file take, if it lies below one of the directories. Keeps errno.
std::optional<Path> path_below(int fd) noexcept;

/// Whether the file is a regular one of a file system that one of the directories is on, and whose files can be mapped
/// (ext2, ext3, ext4, xfs, btrfs, tmpfs). A file outside of the directories may have a second name in them, or be moved
/// there while it is written. Keeps errno.
bool on_cached_device(const struct ::stat& status) noexcept;

/// Whether one of them has any, so that there is something to do at all.
bool any_directories() noexcept;

}  // namespace wherry::preload
