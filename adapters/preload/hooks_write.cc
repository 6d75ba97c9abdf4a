// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that write, that may make files shorter, or that use an offset in the kernel. All other changes reach
// mappings without help.
#include <execinfo.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "direct_transfers.hpp"
#include "hook.hpp"
#include "layout/delegation_page.hpp"
#include "next.hpp"
#include "sharing.hpp"
#include "shortened.hpp"
#include "write_rings.hpp"
#include "writes.hpp"

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
// Programs that were compiled with _FORTIFY_SOURCE call these.
int __dprintf_chk(int fd, int flag, const char* format, ...);
int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments);
}
// NOLINTEND(readability-identifier-naming)

using namespace wherry::preload;

WHERRY_HOOK ssize_t write(int fd, const void* buffer, std::size_t bytes) { return write_here(fd, buffer, bytes); }

WHERRY_HOOK ssize_t writev(int fd, const iovec* parts, int count) { return writev_here(fd, parts, count); }

// These use the offset, by calls that the C library makes itself.

WHERRY_HOOK ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  if (appends_by_ring(fd)) share_offset(fd);
  return WHERRY_NEXT(pwritev, fd, parts, count, offset);
}

// RWF_APPEND uses the size that the kernel knows.
WHERRY_HOOK ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (offset == -1 || flags != 0 || appends_by_ring(fd)) share_offset(fd);
  return WHERRY_NEXT(pwritev2, fd, parts, count, offset, flags);
}

WHERRY_HOOK int vdprintf(int fd, const char* format, va_list arguments) {
  share_offset(fd);
  return WHERRY_NEXT(vdprintf, fd, format, arguments);
}

WHERRY_HOOK int dprintf(int fd, const char* format, ...) {
  share_offset(fd);
  va_list arguments;
  va_start(arguments, format);
  const int result = WHERRY_NEXT(vdprintf, fd, format, arguments);
  va_end(arguments);
  return result;
}

WHERRY_HOOK int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments) {
  share_offset(fd);
  return WHERRY_NEXT(__vdprintf_chk, fd, flag, format, arguments);
}

WHERRY_HOOK int __dprintf_chk(int fd, int flag, const char* format, ...) {
  share_offset(fd);
  va_list arguments;
  va_start(arguments, format);
  const int result = WHERRY_NEXT(__vdprintf_chk, fd, flag, format, arguments);
  va_end(arguments);
  return result;
}

WHERRY_HOOK void backtrace_symbols_fd(void* const* addresses, int count, int fd) noexcept {
  share_offset(fd);
  WHERRY_NEXT(backtrace_symbols_fd, addresses, count, fd);
}

WHERRY_HOOK ssize_t pwrite(int fd, const void* buffer, std::size_t bytes, off_t offset) {
  auto by_mount = [&] { return pwrite_here(fd, buffer, bytes, offset); };
  if (may_be_direct(fd, bytes) && !waits_for_ring(fd, bytes)) {
    if (const auto moved = pwrite_direct(fd, buffer, bytes, offset, KernelsCall(by_mount))) return *moved;
  }
  return by_mount();
}

WHERRY_HOOK int ftruncate(int fd, off_t length) noexcept {
  const int result = WHERRY_NEXT(ftruncate, fd, length);
  if (result == 0) shortened(fd);
  return result;
}

WHERRY_HOOK int truncate(const char* path, off_t length) noexcept {
  const int result = WHERRY_NEXT(truncate, path, length);
  if (result == 0) shortened(path);
  return result;
}

WHERRY_HOOK int fallocate(int fd, int mode, off_t offset, off_t length) {
  const int result = WHERRY_NEXT(fallocate, fd, mode, offset, length);
  if (result == 0 && (mode & FALLOC_FL_COLLAPSE_RANGE) != 0) shortened(fd);
  return result;
}

WHERRY_HOOK ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes,
                                    unsigned flags) {
  before_kernel_read(from, from_offset == nullptr);
  if (to_offset == nullptr) share_offset(to);
  return WHERRY_NEXT(copy_file_range, from, from_offset, to, to_offset, bytes, flags);
}

WHERRY_HOOK ssize_t sendfile(int to, int from, off_t* offset, std::size_t bytes) noexcept {
  before_kernel_read(from, offset == nullptr);
  share_offset(to);
  return WHERRY_NEXT(sendfile, to, from, offset, bytes);
}

WHERRY_HOOK ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes,
                           unsigned flags) {
  before_kernel_read(from, from_offset == nullptr);
  if (to_offset == nullptr) share_offset(to);
  return WHERRY_NEXT(splice, from, from_offset, to, to_offset, bytes, flags);
}

// Some requests use the offset. Those of terminals, which are the most frequent, do not, except FIONREAD. The request
// of MappedFile::map does not, either.
WHERRY_HOOK int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool is_own = request == wherry::layout::kDelegationPageAttach;
  if (!is_own && (_IOC_TYPE(request) != 'T' || request == FIONREAD)) share_offset(fd);
  return WHERRY_NEXT(ioctl, fd, request, argument);
}

WHERRY_OTHER_NAME(__write, write);
WHERRY_OTHER_NAME(pwritev64, pwritev);
WHERRY_OTHER_NAME(pwritev64v2, pwritev2);
WHERRY_OTHER_NAME(pwrite64, pwrite);
WHERRY_OTHER_NAME(__pwrite64, pwrite);
WHERRY_OTHER_NAME(ftruncate64, ftruncate);
WHERRY_OTHER_NAME(truncate64, truncate);
WHERRY_OTHER_NAME(fallocate64, fallocate);
WHERRY_OTHER_NAME(sendfile64, sendfile);
