// SPDX-License-Identifier: Apache-2.0
#include "wherry_map.hpp"

#include <algorithm>
#include <string>

namespace zmq {
namespace {

bool names(std::string_view item, std::string_view endpoint) {
  if (item.empty() || !endpoint.starts_with(item)) return false;
  const std::string_view rest = endpoint.substr(item.size());
  return rest.empty() || item.ends_with('/') || rest.starts_with(':') || rest.starts_with('/');
}

/// libzmq asks the kernel for the addresses of a connection, which knows no names.
bool names_loopback(std::string_view item, std::string_view endpoint) {
  constexpr std::string_view kLocalhost = "tcp://localhost";
  if (!item.starts_with(kLocalhost)) return names(item, endpoint);
  const std::string port(item.substr(kLocalhost.size()));
  return names("tcp://127.0.0.1" + port, endpoint) || names("tcp://[::1]" + port, endpoint);
}

}  // namespace

bool wherry_maps(std::string_view map, std::string_view endpoint) {
  while (!map.empty()) {
    const std::size_t comma = std::min(map.find(','), map.size());
    if (names_loopback(map.substr(0, comma), endpoint)) return true;
    map.remove_prefix(std::min(comma + 1, map.size()));
  }
  return false;
}

}  // namespace zmq
