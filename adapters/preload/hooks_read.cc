// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that read, or only move the offset.
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

#include "descriptors.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "reads.hpp"
#include "sharing.hpp"

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
// Programs that were compiled with _FORTIFY_SOURCE call these; they end the program if the buffer is too small.
ssize_t __read_chk(int fd, void* buffer, std::size_t bytes, std::size_t size);
ssize_t __pread_chk(int fd, void* buffer, std::size_t bytes, off_t offset, std::size_t size);
}
// NOLINTEND(readability-identifier-naming)

using namespace wherry::preload;

WHERRY_HOOK ssize_t read(int fd, void* buffer, std::size_t bytes) { return read_here(fd, buffer, bytes); }

WHERRY_HOOK ssize_t __read_chk(int fd, void* buffer, std::size_t bytes, std::size_t size) {
  return bytes > size ? WHERRY_NEXT(__read_chk, fd, buffer, bytes, size) : read_here(fd, buffer, bytes);
}

WHERRY_HOOK ssize_t pread(int fd, void* buffer, std::size_t bytes, off_t offset) {
  return pread_here(fd, buffer, bytes, offset);
}

WHERRY_HOOK ssize_t __pread_chk(int fd, void* buffer, std::size_t bytes, off_t offset, std::size_t size) {
  return bytes > size ? WHERRY_NEXT(__pread_chk, fd, buffer, bytes, offset, size)
                      : pread_here(fd, buffer, bytes, offset);
}

WHERRY_HOOK ssize_t readv(int fd, const iovec* parts, int count) { return readv_here(fd, parts, count); }

WHERRY_HOOK ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return preadv_here(fd, parts, count, offset);
}

// With offset -1 it is readv with flags.
WHERRY_HOOK ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (offset == -1 && flags == 0) return readv(fd, parts, count);
  if (flags == 0) return preadv(fd, parts, count, offset);
  before_kernel_read(fd, offset == -1);
  return WHERRY_NEXT(preadv2, fd, parts, count, offset, flags);
}

WHERRY_HOOK off_t lseek(int fd, off_t offset, int whence) noexcept { return lseek_here(fd, offset, whence); }

WHERRY_OTHER_NAME(__read, read);
WHERRY_OTHER_NAME(__pread64, pread);
WHERRY_OTHER_NAME(__lseek, lseek);
WHERRY_OTHER_NAME(llseek, lseek);
WHERRY_OTHER_NAME(pread64, pread);
WHERRY_OTHER_NAME(__pread64_chk, __pread_chk);
WHERRY_OTHER_NAME(preadv64, preadv);
WHERRY_OTHER_NAME(preadv64v2, preadv2);
WHERRY_OTHER_NAME(lseek64, lseek);
