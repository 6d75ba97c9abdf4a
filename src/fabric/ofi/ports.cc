// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fabric::ofi {
namespace {

constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325;
constexpr std::uint64_t kFnvPrime = 0x100000001b3;

std::uint64_t hashed(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> (8 * byte) & 0xff)) * kFnvPrime;
  return hash;
}

UniqueFd tcp_socket(int family) { return UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

/// Returns a socket that listens on the port; invalid, with errno, on failure.
UniqueFd listening_on(int family, std::uint16_t port) {
  UniqueFd fd = tcp_socket(family);
  if (!fd.valid()) return fd;
  const int on = 1;
  const int off = 0;
  // Connections in TIME_WAIT of a killed process do not block the port.
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int bound = -1;
  if (family == AF_INET6) {
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  if (bound != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace

std::uint64_t job_number(std::string_view job) {
  std::uint64_t hash = kFnvStart;
  for (const char letter : job) hash = (hash ^ static_cast<unsigned char>(letter)) * kFnvPrime;
  return hash;
}

PortOrder::PortOrder(PortRange range, std::uint64_t job, std::uint16_t node, std::uint16_t port) : range_(range) {
  const std::uint64_t hash = hashed(hashed(hashed(kFnvStart, job), node), port);
  start_ = static_cast<std::size_t>((hash ^ hash >> 32) % range.size());
}

UniqueFd hold_address(std::string_view job, std::uint16_t node, std::uint16_t port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string name("\0wherry-ofi/", 12);
  name += std::to_string(::geteuid()) + "/";
  name.append(job.substr(0, 64)).append("/").append(std::to_string(node)).append("/").append(std::to_string(port));
  std::ranges::copy(name, address.sun_path);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

UniqueFd listen_on_first_free(const PortOrder& order) {
  int family = AF_INET6;
  for (std::size_t i = 0; i < order.size();) {
    UniqueFd fd = listening_on(family, order[i]);
    if (fd.valid()) return fd;
    if (family == AF_INET6 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
      family = AF_INET;  // a kernel without IPv6: try the same port again
      continue;
    }
    if (errno != EADDRINUSE && errno != EACCES) throw Error(errno, "listen", "TCP", "raise ulimit -n if it is short");
    ++i;
  }
  throw Error(EADDRINUSE, "listen", "TCP",
              "no port of WHERRY_PORTS is free: set a larger range, the same on all hosts");
}

}  // namespace wherry::fabric::ofi
