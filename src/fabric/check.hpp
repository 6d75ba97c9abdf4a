// SPDX-License-Identifier: Apache-2.0
// Checks of callers' requests and peers' claims that all fabrics share. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>

#include <wherry/address.hpp>

#include "fabric/offer.hpp"

namespace wherry::fabric {

/// Throws Error(EINVAL) if the size is no multiple of the page size, is 0 or above kMaxSegmentBytes, or the caller's
/// memory is not page-aligned.
void check_offer(const char* operation, const Address& address, const Offer& offer);

/// Returns the node that a listener binds. Throws Error(EADDRNOTAVAIL) if `address` names a node other than this
/// process's.
std::uint16_t node_to_bind(const Address& address);

/// Throws Error(EINVAL) if `address` names no node or no port.
void check_target(const Address& address);

constexpr bool in_range(std::uint64_t offset, std::size_t bytes, std::size_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

constexpr bool is_word(std::uint64_t offset, std::size_t limit) {
  return offset % sizeof(std::uint64_t) == 0 && in_range(offset, sizeof(std::uint64_t), limit);
}

}  // namespace wherry::fabric
