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

/// Reads WHERRY_FILES, WHERRY_FILE_PATH and WHERRY_FILE_PATHS. No other call; nothing is looked at yet.
void read_environment() noexcept;

/// How reads of a file that is read in place are made, whatever the word for it: kernel, cache or automatic.
constexpr Path in_place(Path path) { return path == Path::cache || path == Path::automatic ? path : Path::kernel; }
/// Which way such reads take, by WHERRY_FILE_PATH.
Path chosen_path() noexcept;
/// Whether it depends on a file's name.
bool any_rules() noexcept;
/// The path of a descriptor's file, if it lies below one of the directories. Keeps errno.
std::optional<Path> path_below(int fd) noexcept;
/// The same for transfers past a mount, which go there only by a rule or if WHERRY_FILE_PATH is set. Keeps errno.
std::optional<Path> path_past_mount(int fd) noexcept;

/// Whether the file is a regular one of a file system that one of the directories is on, and whose files can be mapped
/// (ext2, ext3, ext4, xfs, btrfs, tmpfs). A file outside of the directories may have a second name in them, or be moved
/// there while it is written. Keeps errno.
bool on_cached_device(const struct ::stat& status) noexcept;

/// Whether one of the directories is on this file system, and that is a mount (FUSE) whose files are not mapped. Keeps
/// errno.
bool on_mount_device(unsigned major, unsigned minor) noexcept;
/// The least bytes of a transfer past a mount: on the path `host` all are, on `auto`, if it was chosen, those of
/// kLeastOfAutomatic and more; SIZE_MAX: none.
std::size_t least_direct() noexcept;
inline constexpr std::size_t kLeastOfAutomatic = std::size_t{64} << 10;

/// Whether one of them has any, so that there is something to do at all.
bool any_directories() noexcept;

}  // namespace wherry::preload
