// SPDX-License-Identifier: Apache-2.0
//
// Reads of descriptors: in place if the file is mapped.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace wherry::preload {

/// read(2), readv(2), pread(2), preadv(2) and lseek(2), with their results and errno. They make the kernel's call if a
/// copy from a mapping could differ.
ssize_t read_here(int fd, void* buffer, std::size_t bytes);
ssize_t readv_here(int fd, const iovec* parts, int count);
ssize_t pread_here(int fd, void* buffer, std::size_t bytes, off_t offset);
ssize_t preadv_here(int fd, const iovec* parts, int count, off_t offset);
off_t lseek_here(int fd, off_t offset, int whence);

}  // namespace wherry::preload
