// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace wherry::file::mount {

/// The directory to mount on, absolute and without symbolic links. Detaches what a daemon left there that was killed.
/// Throws Error: ENOENT, ENOTDIR, EBUSY (a mount of Wherry's that answers is there).
std::string prepare_mount_point(const std::string& directory);

/// Throws Error where this process cannot use /dev/fuse, and says what to allow.
void check_fuse(const std::string& directory);

/// The device, as st_dev, of Wherry's mount on the directory. None if nothing or something else was mounted there last.
std::optional<dev_t> mounted_device(const std::string& directory);

/// Returns 0 or an errno value. Users without root detach by fusermount3.
/// @param lazy  also while programs use it
int unmount(const std::string& directory, bool lazy);

}  // namespace wherry::file::mount
