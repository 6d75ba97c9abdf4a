// SPDX-License-Identifier: Apache-2.0
//
// A call that writes stamps the file when it begins: while it is inside, however long that takes, what is read may be
// older than the stamp. A lease to read is granted only if no program has the file open to write.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "file/cache.hpp"

namespace wherry::file {

Writers writers_of(int fd) noexcept {
  const int error = errno;
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  // A description of its own: a lease wants one that cannot write, and no setting of the program's is touched.
  // By calls in which no thread is cancelled.
  const long opened = ::syscall(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  const int own = static_cast<int>(opened);
  bool none = false;
  if (own >= 0) {
    // An open to write meanwhile waits until the lease is given back, and this process gets a signal: SIGURG, which is
    // ignored by default.
    if (::fcntl(own, F_SETSIG, SIGURG) == 0 && ::fcntl(own, F_SETLEASE, F_RDLCK) == 0) {
      none = true;
      ::fcntl(own, F_SETLEASE, F_UNLCK);
    }
    ::syscall(SYS_close, own);
  }
  errno = error;
  return none ? Writers::none : Writers::perhaps;
}

Validity validate(Cache& cache, const File& file, int fd, const struct ::stat& status, std::uint64_t now) noexcept {
  const Stamp unwritten(status, now, Writers::none);
  // Once there were no writers: a write since then has left another stamp.
  if (!unwritten.settled() || cache.has_stamp(file, unwritten)) return cache.validate(file, unwritten);
  Writers writers = writers_of(fd);
  if (writers == Writers::perhaps && cache.was_changed_here(file)) writers = Writers::ours;
  struct ::stat after{};
  if (::fstat(fd, &after) != 0) return Validity::unsettled;
  return cache.validate(file, Stamp(after, now, writers));
}

}  // namespace wherry::file
