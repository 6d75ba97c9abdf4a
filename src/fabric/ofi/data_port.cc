// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/data_port.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <memory>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fabric::ofi {
namespace {

/// How long the kernel holds a connection without data before it passes it to libfabric. Honest peers send at once.
constexpr int kDeferSeconds = 3600;
/// Timeout for the rest of a message. The messages of honest peers fit one TCP segment.
constexpr timeval kRestOfMessage{.tv_sec = 0, .tv_usec = 1000};

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool listens_at(int descriptor, const std::string& local) {
  int listens = 0;
  socklen_t length = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) return false;
  return SocketAddress::local_of(descriptor).to_string() == local;
}

void guard(int socket) {
  (void)::fcntl(socket, F_SETFD, FD_CLOEXEC);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kDeferSeconds, sizeof kDeferSeconds);
  // Accepted sockets inherit it.
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kRestOfMessage, sizeof kRestOfMessage);
}

}  // namespace

bool guard_data_port(const SocketAddress& local) noexcept try {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc/self/fd"));
  if (folder == nullptr) return false;
  const std::string text = local.to_string();
  while (const dirent* const entry = ::readdir(folder.get())) {
    const int descriptor = std::atoi(entry->d_name);  // "." and ".." give 0, which is checked once more
    if (!listens_at(descriptor, text)) continue;
    guard(descriptor);
    return true;
  }
  return false;
} catch (...) {
  return false;
}

}  // namespace wherry::fabric::ofi
