// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace wherry::file::mount {

/// Returns the directory to mount on, absolute and without symbolic links. Detaches a dead mount that a killed daemon
/// left there. Throws Error: ENOENT, ENOTDIR, EBUSY (a live mount of Wherry is there).
std::string prepare_mount_point(const std::string& directory);

/// Throws Error if this process cannot use /dev/fuse; the error says what to allow.
void check_fuse(const std::string& directory);

/// The device (st_dev) of Wherry's mount on the directory. Empty if nothing or something else was mounted there last.
std::optional<dev_t> mounted_device(const std::string& directory);

/// Returns 0 or an errno value. Without root this uses fusermount3.
/// @param lazy  unmounts also while programs use it
int unmount(const std::string& directory, bool lazy);

}  // namespace wherry::file::mount
