// SPDX-License-Identifier: Apache-2.0
// What a side says of itself while it connects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/offer.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"

namespace wherry::fabric::ofi {

/// What a side says of itself when two hosts meet. The proof shows that the peer holds the key, not that its numbers
/// are right: check each one.
struct Introduction {
  static constexpr std::size_t kMostData = layout::kMostDataBytes;

  std::uint16_t node = 0;
  std::uint16_t port = 0;  ///< 0: a connector, which binds none
  std::uint64_t segment_bytes = 0;
  Greeting greeting{};
  std::vector<std::byte> data;  ///< the data endpoint's address and what else it needs; opaque here, up to kMostData
};

}  // namespace wherry::fabric::ofi
