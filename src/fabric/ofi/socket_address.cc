// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/socket_address.hpp"

#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <wherry/error.hpp>

namespace wherry::fabric::ofi {
namespace {

sockaddr_in6 as_ipv6(const sockaddr* address) {
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, address, sizeof ipv6);
  return ipv6;
}

sockaddr_in as_ipv4(const sockaddr* address) {
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, address, sizeof ipv4);
  return ipv4;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Null: `error` is an error of getaddrinfo.
AddressList look_up(const std::string& host, int flags, int& error) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  return {error == 0 ? found : nullptr, ::freeaddrinfo};
}

SocketAddress address_of(int socket, int (*ask)(int, sockaddr*, socklen_t*), const char* operation) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (ask(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    throw Error(errno, operation, "", "the peer has gone; connect again");
  }
  return {reinterpret_cast<const sockaddr*>(&storage), length};
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length)
    : length_(std::min<socklen_t>(length, sizeof storage_)) {
  std::memcpy(&storage_, address, length_);
  if (storage_.ss_family != AF_INET6) return;
  const sockaddr_in6 ipv6 = as_ipv6(get());
  if (!IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) return;
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = ipv6.sin6_port;
  std::memcpy(&ipv4.sin_addr, ipv6.sin6_addr.s6_addr + 12, sizeof ipv4.sin_addr);
  storage_ = {};
  std::memcpy(&storage_, &ipv4, sizeof ipv4);
  length_ = sizeof ipv4;
}

SocketAddress SocketAddress::local_of(int socket) { return address_of(socket, ::getsockname, "get local address"); }
SocketAddress SocketAddress::remote_of(int socket) { return address_of(socket, ::getpeername, "get peer's address"); }

std::uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? as_ipv6(get()).sin6_port : as_ipv4(get()).sin_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress changed = *this;
  if (family() == AF_INET6) {
    sockaddr_in6 ipv6 = as_ipv6(get());
    ipv6.sin6_port = htons(port);
    std::memcpy(&changed.storage_, &ipv6, sizeof ipv6);
  } else {
    sockaddr_in ipv4 = as_ipv4(get());
    ipv4.sin_port = htons(port);
    std::memcpy(&changed.storage_, &ipv4, sizeof ipv4);
  }
  return changed;
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> host{};
  if (length_ == 0 ||
      ::getnameinfo(get(), length_, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return host.data();
}

std::string SocketAddress::to_string() const {
  std::string name = host();
  if (length_ == 0) return name;
  return (family() == AF_INET6 ? "[" + name + "]" : name) + ":" + std::to_string(port());
}

bool is_address(const std::string& host) {
  int error = 0;
  return look_up(host, AI_NUMERICHOST, error) != nullptr;
}

std::vector<SocketAddress> resolve(const std::string& host) {
  int error = 0;
  const AddressList found = look_up(host, 0, error);
  if (found == nullptr) {
    const std::string reason = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
    throw Error(ENOENT, "look up host", host, "the resolver says: " + reason + "; correct WHERRY_HOSTS or /etc/hosts");
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6) {
      addresses.emplace_back(each->ai_addr, each->ai_addrlen);
    }
  }
  if (addresses.empty()) throw Error(ENOENT, "look up host", host, "it has no IPv4 or IPv6 address");
  return addresses;
}

}  // namespace wherry::fabric::ofi
