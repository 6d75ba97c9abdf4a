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

#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {
namespace {

/// How long the kernel holds a connection without data before it passes it to libfabric. Honest peers send at once.
constexpr int kDeferSeconds = 3600;
/// Timeout for the rest of a message. The messages of honest peers fit one TCP segment.
constexpr timeval kRestOfMessage{.tv_sec = 0, .tv_usec = 1000};

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Calls `visit` for the descriptors of this process, until it returns true. False: it never has.
template <class Visit>
bool for_each_descriptor(Visit&& visit) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc/self/fd"));
  if (folder == nullptr) return false;
  while (const dirent* const entry = ::readdir(folder.get())) {
    // "." and ".." give 0, which is visited once more.
    if (visit(std::atoi(entry->d_name))) return true;
  }
  return false;
}

bool is_connected_at(int descriptor, const AddressTexts& local) {
  int listens = 1;
  socklen_t length = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens != 0) return false;
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return false;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
  return local.contains(SocketAddress::local_of(descriptor).to_string());
}

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
  const std::string text = local.to_string();
  return for_each_descriptor([&](int descriptor) {
    if (!listens_at(descriptor, text)) return false;
    guard(descriptor);
    return true;
  });
} catch (...) {
  return false;
}

AddressTexts end_strangers(const AddressTexts& local, const AddressTexts& peers, const AddressTexts& suspects) noexcept
    try {
  AddressTexts found;
  (void)for_each_descriptor([&](int descriptor) {
    if (!is_connected_at(descriptor, local)) return false;
    // Other threads may close the descriptor, and open it for something else: the copy stays what it is.
    const UniqueFd socket(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!socket.valid() || !is_connected_at(socket.get(), local)) return false;
    const std::string remote = SocketAddress::remote_of(socket.get()).to_string();
    if (peers.contains(remote)) return false;
    if (suspects.contains(remote)) {
      (void)::shutdown(socket.get(), SHUT_RDWR);
    } else {
      found.insert(remote);
    }
    return false;
  });
  return found;
} catch (...) {
  return {};
}

}  // namespace wherry::fabric::ofi
