// SPDX-License-Identifier: Apache-2.0
#include "wherry_map.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace zmq {
namespace {

bool names(std::string_view item, std::string_view endpoint) {
  if (item.empty() || !endpoint.starts_with(item)) return false;
  const std::string_view rest = endpoint.substr(item.size());
  return rest.empty() || item.ends_with('/') || rest.starts_with(':') || rest.starts_with('/');
}

/// libzmq asks the kernel for the addresses of a connection, and the kernel knows no names.
bool names_loopback(std::string_view item, std::string_view endpoint) {
  constexpr std::string_view kLocalhost = "tcp://localhost";
  if (!item.starts_with(kLocalhost)) return names(item, endpoint);
  const std::string port(item.substr(kLocalhost.size()));
  return names("tcp://127.0.0.1" + port, endpoint) || names("tcp://[::1]" + port, endpoint);
}

/// Returns tcp://127.0.0.1:2000 for tcp://[::ffff:127.0.0.1]:2000, which is the name that an IPv6 socket uses. Empty
/// for any other endpoint.
std::string without_v6(std::string_view endpoint) {
  constexpr std::string_view kMapped = "tcp://[::ffff:";
  const std::size_t end = endpoint.find(']');
  if (!endpoint.starts_with(kMapped) || end == std::string_view::npos) return {};
  const std::string address(endpoint.substr(kMapped.size(), end - kMapped.size()));
  return "tcp://" + address + std::string(endpoint.substr(end + 1));
}

}  // namespace

/// Never destroyed, because its users may outlive main().
std::string_view wherry_map_of_environment() {
  static const std::string& map = *new std::string([] {
    const char* const text = std::getenv("WHERRY_ZMQ_MAP");
    return text == nullptr ? "" : text;
  }());
  return map;
}

bool wherry_maps(std::string_view map, std::string_view endpoint) {
  const std::string as_v4 = without_v6(endpoint);
  if (!as_v4.empty()) endpoint = as_v4;
  while (!map.empty()) {
    const std::size_t comma = std::min(map.find(','), map.size());
    if (names_loopback(map.substr(0, comma), endpoint)) return true;
    map.remove_prefix(std::min(comma + 1, map.size()));
  }
  return false;
}

}  // namespace zmq
