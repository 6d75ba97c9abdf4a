// SPDX-License-Identifier: Apache-2.0
//
// What the kernel knows of a descriptor whose transfers may go past a mount.
#pragma once

#include <linux/stat.h>

#include <cstdint>
#include <optional>

#include <wherry/file_path.hpp>

namespace wherry::preload {

/// Gets the kernel's knowledge of a descriptor's file. Does not ask the mount.
bool look(int fd, struct statx& found) noexcept;

/// Whether the kernel knows that the file has at least this size. False if it cannot tell. Does not ask the mount.
bool knows_size(int fd, std::uint64_t size) noexcept;

/// Whether a descriptor has a regular file on a mount of the served directories. Does not ask the mount. Keeps errno.
bool is_on_mount(int fd) noexcept;

/// Returns the path that was chosen for a descriptor, or for its file if that lies below one of the directories.
std::optional<files::Path> path_of_transfers(int fd) noexcept;

/// The same, if the file is on a mount and its transfers may go past it.
std::optional<files::Path> path_on_mount(int fd, const struct statx& found) noexcept;

/// Returns the access mode of a descriptor, or -1 if a transfer past the mount would differ from the kernel's call.
int access_of(int fd) noexcept;

}  // namespace wherry::preload
