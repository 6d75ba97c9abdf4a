// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of a descriptor whose transfers may go past a mount.
#pragma once

#include <linux/stat.h>

#include <optional>

#include <wherry/file_path.hpp>

namespace wherry::preload {

/// The file of a descriptor as far as the kernel knows it by itself: the mount is not asked.
bool look(int fd, struct statx& found) noexcept;

/// The path of the descriptor's file, if that is on a mount, below one of the directories.
std::optional<files::Path> path_on_mount(int fd, const struct statx& found) noexcept;

/// The access of a descriptor; -1: transfers past the mount would do something else than the kernel's call.
int access_of(int fd) noexcept;

}  // namespace wherry::preload
