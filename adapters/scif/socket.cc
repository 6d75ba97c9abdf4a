// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>

#include <wherry/error.hpp>

namespace wherry::scif {

UniqueFd make_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) throw Error(errno, "open", "an endpoint", "raise the limit of open files (ulimit -n)");
  tune_socket(socket.get());
  return socket;
}

void tune_socket(int socket) {
  // The kernel doubles it; writable is a socket that has at most a quarter of that, 4096 bytes, at its peer.
  const int bytes = 8192;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  // The descriptor's own O_NONBLOCK is the program's. A connector must not wait for room in a backlog, nor a thread
  // that lost a race for a request wait for the next.
  const timeval at_once{.tv_sec = 0, .tv_usec = 1};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &at_once, sizeof at_once);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &at_once, sizeof at_once);
}

std::uint64_t inode_of(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

}  // namespace wherry::scif
