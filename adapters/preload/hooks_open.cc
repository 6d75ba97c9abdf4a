// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that open and close descriptors.
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>

#include "descriptors.hpp"
#include "direct_descriptors.hpp"
#include "direct_files.hpp"
#include "directories.hpp"
#include "hook.hpp"
#include "hooks_open.hpp"
#include "next.hpp"
#include "program_memory.hpp"
#include "sharing.hpp"
#include "shortened.hpp"
#include "stepping_aside.hpp"
#include "vfork.hpp"

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
// <sys/pidfd.h>, which not every C library has.
int pidfd_getfd(int process, int fd, unsigned flags) noexcept;
// Programs that were compiled with _FORTIFY_SOURCE call these if they pass no mode.
int __open_2(const char* path, int flags);
int __openat_2(int at, const char* path, int flags);
}
// NOLINTEND(readability-identifier-naming)

namespace wherry::preload {

namespace {

/// `other`: the descriptor gains nothing from an offset of its own.
Access alone_for(int fd, int flags) {
  constexpr int kOther = O_PATH | O_DIRECT | O_DIRECTORY | O_TRUNC;
  constexpr int kOtherWrites = O_PATH | O_DIRECT | O_SYNC | O_DSYNC;
  // The C library's stdio uses the offsets of the standard streams.
  if (fd <= STDERR_FILENO) return Access::other;
  const int access = flags & O_ACCMODE;
  if (access == O_RDONLY) return (flags & kOther) == 0 ? Access::reads : Access::other;
  if ((flags & kOtherWrites) != 0 || !any_directories()) return Access::other;
  if (access == O_WRONLY) return Access::writes;
  // Elsewhere its reads at given offsets may be made in place.
  const bool may_have_ring = access == O_RDWR && entry_of(fd) != nullptr && !is_filtered();
  return may_have_ring && is_on_mount(fd) ? Access::both : Access::other;
}

}  // namespace

int opened(int fd, int flags) noexcept {
  if (fd < 0) return fd;
  const int error = errno;
  if (!in_vfork_child()) {
    if (const Access access = alone_for(fd, flags); access != Access::other)
      opened_alone(fd, access);
    else
      remember(fd, access);
  }
  if ((flags & O_TRUNC) != 0) shortened(fd);
  errno = error;
  return fd;
}

int doubled(int fd) noexcept {
  if (fd >= 0 && !in_vfork_child()) forget(fd);
  return fd;
}

void forget_range(unsigned first, unsigned last) noexcept {
  if (in_vfork_child()) return;
  for (unsigned fd = first; fd <= last && fd < kDescriptors; fd++) closes_number(static_cast<int>(fd));
  const int end = highest_descriptor();
  for (unsigned fd = first; fd <= last && fd < static_cast<unsigned>(end); fd++) {
    // The kernel may still refuse the call.
    share_offset(static_cast<int>(fd));
    // Until the number is opened again.
    never_track(static_cast<int>(fd));
  }
}

}  // namespace wherry::preload

using namespace wherry::preload;

namespace {

bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// The optional last argument of open.
#define WHERRY_MODE(flags)                                   \
  mode_t mode = 0;                                           \
  if (takes_mode(flags)) {                                   \
    va_list arguments;                                       \
    va_start(arguments, flags);                              \
    mode = static_cast<mode_t>(va_arg(arguments, unsigned)); \
    va_end(arguments);                                       \
  }                                                          \
  static_assert(true, "a semicolon may follow")

/// UIO_MAXIOV: the most messages that sendmmsg sends at once.
constexpr unsigned kMostMessages = 1024;

/// Shares the offsets of descriptors that a message gives to another process.
void share_passed_in(const msghdr* message) {
  const char* const end = static_cast<const char*>(message->msg_control) + message->msg_controllen;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(message), part)) {
    // The kernel refuses a part that extends beyond the end.
    if (part->cmsg_len > static_cast<std::size_t>(end - reinterpret_cast<const char*>(part))) return;
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(0)) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      share_offset(fd);
    }
  }
}

/// The same for a message that the kernel has not checked yet. Returns false if the kernel will refuse it.
bool share_passed(const msghdr* message) {
  if (highest_descriptor() == 0) return true;
  ProgramMemory memory;
  if (!memory.can_read(message, sizeof(*message))) return false;
  if (message->msg_control == nullptr) return true;
  if (!memory.can_read(message->msg_control, message->msg_controllen)) return false;
  share_passed_in(message);
  return true;
}

bool is_lock(int command) {
  switch (command) {
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return true;
    default:
      return false;
  }
}

/// Whether F_SETFL may change where the kernel writes.
bool may_change_place(int fd, const void* flags) {
  if ((reinterpret_cast<std::uintptr_t>(flags) & (O_APPEND | O_DIRECT)) != 0) return true;
  return (WHERRY_NEXT(fcntl, fd, F_GETFL) & O_APPEND) != 0;
}

int control(int fd, int command, void* argument) {
  const auto next = [&] { return WHERRY_NEXT(fcntl, fd, command, argument); };
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    share_offset(fd);
    return doubled(next());
  }
  // A lock may begin at the offset.
  if (is_lock(command)) share_offset(fd);
  if (command == F_SETFL && may_change_place(fd, argument)) share_offset(fd);
  const int result = next();
  if (command == F_SETFL && result == 0 && (reinterpret_cast<std::uintptr_t>(argument) & O_DIRECT) != 0) {
    share_offset(fd);
    never_track(fd);
  }
  return result;
}

}  // namespace

WHERRY_HOOK int open(const char* path, int flags, ...) {
  WHERRY_MODE(flags);
  return opened(WHERRY_NEXT(open, path, flags, mode), flags);
}

WHERRY_HOOK int openat(int at, const char* path, int flags, ...) {
  WHERRY_MODE(flags);
  return opened(WHERRY_NEXT(openat, at, path, flags, mode), flags);
}

WHERRY_HOOK int creat(const char* path, mode_t mode) {
  return opened(WHERRY_NEXT(creat, path, mode), O_WRONLY | O_CREAT | O_TRUNC);
}

WHERRY_HOOK int open_by_handle_at(int mount, file_handle* handle, int flags) {
  return opened(WHERRY_NEXT(open_by_handle_at, mount, handle, flags), flags);
}

// The C library opens the descriptor itself.
WHERRY_HOOK int shm_open(const char* name, int flags, mode_t mode) {
  return opened(WHERRY_NEXT_FOR_CALLER(shm_open, name, flags, mode), flags);
}

WHERRY_HOOK int __open_2(const char* path, int flags) { return opened(WHERRY_NEXT(__open_2, path, flags), flags); }

WHERRY_HOOK int __openat_2(int at, const char* path, int flags) {
  return opened(WHERRY_NEXT(__openat_2, at, path, flags), flags);
}

WHERRY_HOOK int close(int fd) {
  const Closing closing(fd);
  return WHERRY_NEXT(close, fd);
}

WHERRY_HOOK int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr int kUnshare = 1 << 1;      // CLOSE_RANGE_UNSHARE: other threads keep the descriptors
  constexpr int kCloseOnExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC: nothing is closed yet
  if ((flags & kUnshare) != 0 && !in_vfork_child()) share_all_for_good();
  if ((flags & kCloseOnExec) == 0) forget_range(first, last);
  return WHERRY_NEXT(close_range, first, last, flags);
}

WHERRY_HOOK void closefrom(int first) noexcept {
  forget_range(static_cast<unsigned>(std::max(first, 0)), UINT_MAX);
  WHERRY_NEXT(closefrom, first);
}

WHERRY_HOOK int dup(int fd) noexcept {
  share_offset(fd);
  return doubled(WHERRY_NEXT(dup, fd));
}

// `to` may be in use: its descriptor is closed in the same call.
WHERRY_HOOK int dup2(int from, int to) noexcept {
  if (from == to) return WHERRY_NEXT(dup2, from, to);
  share_offset(from);
  share_offset(to);
  const Closing closing(to);
  return doubled(WHERRY_NEXT(dup2, from, to));
}

WHERRY_HOOK int dup3(int from, int to, int flags) noexcept {
  if (from == to) return WHERRY_NEXT(dup3, from, to, flags);
  share_offset(from);
  share_offset(to);
  const Closing closing(to);
  return doubled(WHERRY_NEXT(dup3, from, to, flags));
}

// The process may be this one.
WHERRY_HOOK int pidfd_getfd(int process, int fd, unsigned flags) noexcept {
  share_offset(fd);
  return doubled(WHERRY_NEXT(pidfd_getfd, process, fd, flags));
}

WHERRY_HOOK int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument);
}

WHERRY_HOOK int lockf(int fd, int command, off_t length) {
  share_offset(fd);
  return WHERRY_NEXT(lockf, fd, command, length);
}

WHERRY_HOOK ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  share_passed(message);
  return WHERRY_NEXT(sendmsg, fd, message, flags);
}

WHERRY_HOOK int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  for (unsigned i = 0; i < std::min(count, kMostMessages) && share_passed(&messages[i].msg_hdr); i++) {
  }
  return WHERRY_NEXT(sendmmsg, fd, messages, count, flags);
}

// The C library closes the descriptor and replaces the standard streams itself.
WHERRY_HOOK int login_tty(int fd) noexcept {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, fd}) share_offset(number);
  const int result = WHERRY_NEXT(login_tty, fd);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, fd}) doubled(number);
  return result;
}

WHERRY_OTHER_NAME(__open, open);
WHERRY_OTHER_NAME(__open64, open);
WHERRY_OTHER_NAME(__close, close);
WHERRY_OTHER_NAME(__fcntl, fcntl);
WHERRY_OTHER_NAME(__dup2, dup2);
WHERRY_OTHER_NAME(open64, open);
WHERRY_OTHER_NAME(openat64, openat);
WHERRY_OTHER_NAME(creat64, creat);
WHERRY_OTHER_NAME(fcntl64, fcntl);
WHERRY_OTHER_NAME(lockf64, lockf);
WHERRY_OTHER_NAME(__open64_2, __open_2);
WHERRY_OTHER_NAME(__openat64_2, __openat_2);
