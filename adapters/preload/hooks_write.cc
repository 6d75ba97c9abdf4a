// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that change files.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "changes.hpp"
#include "hook.hpp"
#include "marks.hpp"
#include "next.hpp"
#include "program_memory.hpp"
#include "sharing.hpp"

// NOLINTBEGIN(readability-identifier-naming)
extern "C" int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments);
extern "C" int __dprintf_chk(int fd, int flag, const char* format, ...);
// NOLINTEND(readability-identifier-naming)

using namespace wherry::preload;

namespace {

/// IOV_MAX: more parts are refused.
constexpr int kMostParts = 1024;

/// What writing these parts at an offset changes of the file; if the kernel will refuse them, any part of it.
Range range_of(const std::optional<Changed>& file, const iovec* parts, int count, off_t offset) {
  if (!file || count <= 0 || count > kMostParts) return {};
  if (!can_read(parts, static_cast<std::size_t>(count) * sizeof(*parts))) return {};
  std::uint64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    if (__builtin_add_overflow(bytes, parts[i].iov_len, &bytes)) return {};
  }
  return Range::of(offset, bytes);
}

}  // namespace

WHERRY_HOOK ssize_t write(int fd, const void* buffer, std::size_t bytes) {
  return change_plainly(
      changed_file(fd), {}, [&] { return WHERRY_NEXT(syscall, SYS_write, fd, buffer, bytes); },
      [&] { return WHERRY_NEXT(write, fd, buffer, bytes); });
}

WHERRY_HOOK ssize_t pwrite64(int fd, const void* buffer, std::size_t bytes, off64_t offset) {
  return change_plainly(
      changed_file(fd), Range::of(offset, bytes),
      [&] { return WHERRY_NEXT(syscall, SYS_pwrite64, fd, buffer, bytes, offset); },
      [&] { return WHERRY_NEXT(pwrite64, fd, buffer, bytes, offset); });
}

WHERRY_HOOK ssize_t pwrite(int fd, const void* buffer, std::size_t bytes, off_t offset) {
  return pwrite64(fd, buffer, bytes, offset);
}

WHERRY_HOOK ssize_t writev(int fd, const iovec* parts, int count) {
  return change_plainly(
      changed_file(fd), {}, [&] { return WHERRY_NEXT(syscall, SYS_writev, fd, parts, count); },
      [&] { return WHERRY_NEXT(writev, fd, parts, count); });
}

WHERRY_HOOK ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  const auto file = changed_file(fd);
  // The offset has two words, of which the kernel takes the first here.
  return change_plainly(
      file, range_of(file, parts, count, offset),
      [&] { return WHERRY_NEXT(syscall, SYS_pwritev, fd, parts, count, offset, 0L); },
      [&] { return WHERRY_NEXT(pwritev64, fd, parts, count, offset); });
}

WHERRY_HOOK ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

WHERRY_HOOK ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  const auto file = changed_file(fd);
  return change<Cancelled::before>(file, (flags & RWF_APPEND) != 0 ? Range{} : range_of(file, parts, count, offset),
                                   [&] { return WHERRY_NEXT(pwritev64v2, fd, parts, count, offset, flags); });
}

WHERRY_HOOK ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return pwritev64v2(fd, parts, count, offset, flags);
}

WHERRY_HOOK int ftruncate64(int fd, off64_t length) noexcept {
  return change(changed_file(fd), {}, [&] { return WHERRY_NEXT(ftruncate64, fd, length); });
}

WHERRY_HOOK int ftruncate(int fd, off_t length) noexcept { return ftruncate64(fd, length); }

WHERRY_HOOK int truncate64(const char* path, off64_t length) noexcept {
  return change(changed_file(path), {}, [&] { return WHERRY_NEXT(truncate64, path, length); });
}

WHERRY_HOOK int truncate(const char* path, off_t length) noexcept { return truncate64(path, length); }

WHERRY_HOOK int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return change<Cancelled::before>(changed_file(fd), {},
                                   [&] { return WHERRY_NEXT(fallocate64, fd, mode, offset, length); });
}

WHERRY_HOOK int fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate64(fd, mode, offset, length);
}

WHERRY_HOOK int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return change(changed_file(fd), {}, [&] { return WHERRY_NEXT(posix_fallocate64, fd, offset, length); });
}

WHERRY_HOOK int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }

WHERRY_HOOK ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes,
                                    unsigned flags) {
  if (from_offset == nullptr) share_offset(from);
  if (to_offset == nullptr) share_offset(to);
  return change<Cancelled::before>(changed_file(to), {}, [&] {
    return WHERRY_NEXT(copy_file_range, from, from_offset, to, to_offset, bytes, flags);
  });
}

WHERRY_HOOK ssize_t sendfile64(int to, int from, off64_t* offset, std::size_t bytes) noexcept {
  if (offset == nullptr) share_offset(from);
  return change(changed_file(to), {}, [&] { return WHERRY_NEXT(sendfile64, to, from, offset, bytes); });
}

WHERRY_HOOK ssize_t sendfile(int to, int from, off_t* offset, std::size_t bytes) noexcept {
  return sendfile64(to, from, offset, bytes);
}

WHERRY_HOOK ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes,
                           unsigned flags) {
  if (from_offset == nullptr) share_offset(from);
  if (to_offset == nullptr) share_offset(to);
  return change<Cancelled::before>(changed_file(to), {},
                                   [&] { return WHERRY_NEXT(splice, from, from_offset, to, to_offset, bytes, flags); });
}

// Some change the file (FICLONE), some use the offset; those of terminals, which are the most frequent, neither.
WHERRY_HOOK int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) == 'T') return WHERRY_NEXT(ioctl, fd, request, argument);
  share_offset(fd);
  return change(changed_file(fd), {}, [&] { return WHERRY_NEXT(ioctl, fd, request, argument); });
}

WHERRY_HOOK void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  void* const place = WHERRY_NEXT(mmap64, address, bytes, protection, flags, fd, offset);
  const int type = flags & MAP_TYPE;
  if (place != MAP_FAILED && fd >= 0 && (flags & MAP_ANONYMOUS) == 0 && type != MAP_PRIVATE) mapped_to_write(fd);
  return place;
}

WHERRY_HOOK void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return mmap64(address, bytes, protection, flags, fd, offset);
}

WHERRY_HOOK int vdprintf(int fd, const char* format, va_list arguments) {
  return change<Cancelled::before>(changed_file(fd), {}, [&] { return WHERRY_NEXT(vdprintf, fd, format, arguments); });
}

WHERRY_HOOK int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vdprintf(fd, format, arguments);
  va_end(arguments);
  return result;
}

WHERRY_HOOK int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments) {
  return change(changed_file(fd), {}, [&] { return WHERRY_NEXT(__vdprintf_chk, fd, flag, format, arguments); });
}

WHERRY_HOOK int __dprintf_chk(int fd, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __vdprintf_chk(fd, flag, format, arguments);
  va_end(arguments);
  return result;
}
