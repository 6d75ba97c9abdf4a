// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/socket.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <wherry/error.hpp>

namespace wherry::scif {
namespace {

/// For use if /proc is not mounted, or no descriptor is free to open it.
int descriptor_by_number(std::uint64_t inode, int except) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 0; fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65536)); ++fd) {
    if (fd != except && inode_of(fd) == inode) return fd;
  }
  return -1;
}

}  // namespace

UniqueFd make_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) throw Error(errno, "open", "an endpoint", "raise the limit of open files (ulimit -n)");
  tune_socket(socket.get());
  return socket;
}

void tune_socket(int socket) {
  // The kernel doubles it. A socket is writable while at most a quarter of that, 4096 bytes, lies at its peer.
  const int bytes = 8192;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  // O_NONBLOCK is the program's. A connector must not wait for room in a backlog, nor a thread that lost the race for a
  // connection wait for the next one.
  const timeval at_once{.tv_sec = 0, .tv_usec = 1};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &at_once, sizeof at_once);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &at_once, sizeof at_once);
}

std::uint64_t inode_of(int descriptor) {
  struct stat status{};
  // Not fstat: ThreadSanitizer takes that for a use of a descriptor which may be another thread's.
  if (::fstatat(descriptor, "", &status, AT_EMPTY_PATH) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

int descriptor_of(std::uint64_t inode, int except) {
  // Uses no memory from the heap, unlike opendir: programs unmap parts of it that they had registered.
  const UniqueFd folder(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return descriptor_by_number(inode, except);
  alignas(dirent64) std::array<char, 4096> buffer;
  for (ssize_t bytes = 0; (bytes = ::getdents64(folder.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(&buffer[static_cast<std::size_t>(at)]);
      at += entry->d_reclen;
      int fd = -1;
      std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), fd);
      if (fd >= 0 && fd != except && inode_of(fd) == inode) return fd;
    }
  }
  return -1;
}

}  // namespace wherry::scif
