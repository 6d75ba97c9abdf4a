// SPDX-License-Identifier: Apache-2.0
//
// pread and pwrite of a mount's files past the mount, where the result is the same as the kernel's. If a function
// returns nothing, the kernel must make the whole call. `read` and `write` are always the kernel's, because they use
// its offset.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "direct_files.hpp"

namespace wherry::preload {

/// Cancellation points, as the kernel's calls are, before anything is moved.
std::optional<ssize_t> pread_direct(int fd, void* buffer, std::size_t bytes, off_t offset);
std::optional<ssize_t> pwrite_direct(int fd, const void* buffer, std::size_t bytes, off_t offset);

/// Whether a transfer of this many bytes may be one of these.
bool may_be_direct(int fd, std::size_t bytes) noexcept;

}  // namespace wherry::preload
