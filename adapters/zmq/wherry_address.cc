// SPDX-License-Identifier: Apache-2.0
#include "wherry_address.hpp"

#include <cerrno>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "wherry_map.hpp"
#include "wherry_memory.hpp"

namespace zmq {
int wherry_address_t::check(const std::string& name) {
  try {
    const wherry::Address address = wherry::Address::parse("wherry://" + name);
    if (address.node && address.port) return 0;
    errno = EINVAL;
  } catch (const wherry::Error& error) {
    errno = error.code().value();
  }
  return -1;
}

void wherry_address_t::translate(std::string& protocol, std::string& path) {
  if (protocol == "scif") {
    protocol = "wherry";
    if (path.find(':') == std::string::npos) path = "*:" + path;
  }
  if (protocol == "wherry" || wherry_maps(wherry_map_of_environment(), protocol + "://" + path)) {
    wherry_message_memory().expect_user();
  }
}

std::string wherry_address_t::bound(const std::string& path) {
  try {
    wherry::Address address = wherry::Address::parse("wherry://" + path);
    if (!address.node) address.node = wherry::own_node();
    return address.to_string();
  } catch (const wherry::Error&) {
    return "wherry://" + path;
  }
}

}  // namespace zmq
