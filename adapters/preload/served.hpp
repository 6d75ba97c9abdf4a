// SPDX-License-Identifier: Apache-2.0
//
// Files that are read in place: which files these are, and how one of them is read.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "descriptors.hpp"

namespace wherry::preload {

enum class Tracking : unsigned char { later, never, tracked };

/// Checks the file of a descriptor whose state is `state`, maps it, and stores the fields of its entry. Returns `later`
/// if another thread is doing so, the descriptor was closed, or the file cannot be mapped now. Keeps errno.
Tracking track(int fd, Entry& entry, State state) noexcept;

/// pread of a tracked descriptor, with its result and errno.
ssize_t read_tracked(int fd, Entry& entry, State state, void* buffer, std::size_t bytes, off_t offset);
/// preadv of a tracked descriptor, likewise.
ssize_t readv_tracked(int fd, Entry& entry, State state, const iovec* parts, int count, off_t offset);

}  // namespace wherry::preload
