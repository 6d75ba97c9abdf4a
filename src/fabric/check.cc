// SPDX-License-Identifier: Apache-2.0
#include "fabric/check.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

#include <wherry/error.hpp>

namespace wherry::fabric {

void check_offer(const char* operation, const Address& address, const Offer& offer) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (offer.segment_bytes == 0 || offer.segment_bytes > kMaxSegmentBytes || offer.segment_bytes % page != 0) {
    throw Error(EINVAL, operation, address.to_string(),
                "a segment has at least one page and at most " + std::to_string(kMaxSegmentBytes) +
                    " bytes, a multiple of " + std::to_string(page) + "; asked for were " +
                    std::to_string(offer.segment_bytes));
  }
  if (offer.compact && offer.memory != nullptr) {
    throw Error(EINVAL, operation, address.to_string(), "memory brought into a connection cannot be a compact segment");
  }
  if (reinterpret_cast<std::uintptr_t>(offer.memory) % page != 0) {
    throw Error(EINVAL, operation, address.to_string(),
                "memory brought into a connection must start at a multiple of " + std::to_string(page));
  }
}

std::uint16_t node_to_bind(const Address& address) {
  const std::uint16_t own = own_node();
  if (address.node && *address.node != own) {
    throw Error(EADDRNOTAVAIL, "listen", address.to_string(),
                "this process is node " + std::to_string(own) + "; listen on that node or *, or set WHERRY_NODE");
  }
  return own;
}

void check_target(const Address& address) {
  if (!address.node || !address.port) {
    throw Error(EINVAL, "connect", address.to_string(), "name the node and the port to connect to; * is for listening");
  }
}

}  // namespace wherry::fabric
