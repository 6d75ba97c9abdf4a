// SPDX-License-Identifier: Apache-2.0
// An IPv4 or IPv6 address with its port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::fabric::ofi {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  /// Return the local and the remote address of a connected socket. An IPv4-mapped IPv6 address (::ffff:1.2.3.4)
  /// becomes IPv4. Throw Error.
  static SocketAddress local_of(int socket);
  static SocketAddress remote_of(int socket);

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t length() const { return length_; }
  [[nodiscard]] int family() const { return storage_.ss_family; }
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] SocketAddress with_port(std::uint16_t port) const;
  /// "192.0.2.1", "2001:db8::1", "fe80::1%eth0".
  [[nodiscard]] std::string host() const;
  /// "192.0.2.1:47000", "[2001:db8::1]:47000", "[fe80::1%eth0]:47000".
  [[nodiscard]] std::string to_string() const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

/// Returns the addresses of a host in the order in which to try them (getaddrinfo). Blocks as long as the system's
/// resolver. Throws Error(ENOENT) with the host and the resolver's reason.
std::vector<SocketAddress> resolve(const std::string& host);
/// Returns whether the host is given by its address, which needs no resolver.
bool is_address(const std::string& host);

}  // namespace wherry::fabric::ofi
