// SPDX-License-Identifier: Apache-2.0
//
// The directories whose files are served: WHERRY_FILES as it was when the library was loaded.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>

#include <wherry/file_path.hpp>

namespace wherry::preload {

using files::Path;

/// Reads WHERRY_FILES, WHERRY_FILE_PATH and WHERRY_FILE_PATHS. Does not look at the directories yet.
void read_environment() noexcept;

/// The path of reads in place, whatever the word: kernel, cache or automatic.
constexpr Path in_place(Path path) { return path == Path::cache || path == Path::automatic ? path : Path::kernel; }
/// The path of such reads by WHERRY_FILE_PATH.
Path chosen_path() noexcept;
/// Whether the path depends on the file's name.
bool any_rules() noexcept;
/// Returns the path of a descriptor's file, if it lies below one of the directories. Keeps errno.
std::optional<Path> path_below(int fd) noexcept;
/// The same for transfers past a mount, which need a rule or WHERRY_FILE_PATH. Keeps errno.
std::optional<Path> path_past_mount(int fd) noexcept;

/// Whether the file is a regular one on the file system of one of the directories, if files there can be mapped (ext2,
/// ext3, ext4, xfs, btrfs, tmpfs, a mount of `wherry mount`). A file outside the directories may have a second name in
/// them, or be moved there while it is written. Keeps errno.
bool on_cached_device(const struct ::stat& status) noexcept;

/// Whether one of the directories is on this file system, and it is a mount (FUSE) without passthrough. Keeps errno.
bool on_mount_device(unsigned major, unsigned minor) noexcept;
/// Shortest transfer that goes past a mount: 1 byte on the path `host`, kLeastOfAutomatic on `auto` if that was chosen,
/// SIZE_MAX if none does.
std::size_t least_direct() noexcept;
/// To be called when the program chooses a path for a descriptor.
void allow_direct(Path allowed) noexcept;
inline constexpr std::size_t kLeastOfAutomatic = std::size_t{64} << 10;

/// Whether any directory is named, so that there is something to do.
bool any_directories() noexcept;

}  // namespace wherry::preload
