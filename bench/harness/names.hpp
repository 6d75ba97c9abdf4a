// SPDX-License-Identifier: Apache-2.0
// Addresses for libraries that cannot choose one themselves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace wherry::bench {

/// A port of the loopback address that was free a moment ago.
inline std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool found = probe >= 0 && ::bind(probe, any, length) == 0 && ::getsockname(probe, any, &length) == 0;
  const int error = errno;
  ::close(probe);
  if (!found) throw std::system_error(error, std::system_category(), "looking for a free port");
  return ntohs(address.sin_port);
}

/// Where a socket of this name may lie.
inline std::string temporary_path(const std::string& name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

}  // namespace wherry::bench
