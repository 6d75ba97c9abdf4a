// SPDX-License-Identifier: Apache-2.0
//
// pread and pwrite of a mount's files past the mount, where the kernel's call would do the same. Nothing: the call is
// the kernel's, from its beginning. `read` and `write` always are: the offset they use is the kernel's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "direct_files.hpp"

namespace wherry::preload {

/// Points of cancellation, as the kernel's calls are, before anything is moved.
std::optional<ssize_t> pread_direct(int fd, void* buffer, std::size_t bytes, off_t offset);
std::optional<ssize_t> pwrite_direct(int fd, const void* buffer, std::size_t bytes, off_t offset);

/// Whether a transfer of this many bytes may be one of those.
bool may_be_direct(int fd, std::size_t bytes) noexcept;

}  // namespace wherry::preload
