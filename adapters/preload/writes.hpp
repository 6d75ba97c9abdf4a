// SPDX-License-Identifier: Apache-2.0
//
// Writes of descriptors: by a ring if the mount has one for the file.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace wherry::preload {

/// write(2), writev(2) and pwrite(2), with their results and errno.
ssize_t write_here(int fd, const void* buffer, std::size_t bytes);
ssize_t writev_here(int fd, const iovec* parts, int count);
ssize_t pwrite_here(int fd, const void* buffer, std::size_t bytes, off_t offset);

/// Whether a write of a file on the path `auto` is left to the mount because it counts for the descriptor's first ring.
bool waits_for_ring(int fd, std::size_t bytes) noexcept;

}  // namespace wherry::preload
