// SPDX-License-Identifier: Apache-2.0
// The description of itself that a side sends while it connects to another host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/offer.hpp"
#include "fabric/ofi/layout/rendezvous_messages.hpp"

namespace wherry::fabric::ofi {

/// The description of one side. The proof shows only that the peer holds the key, not that its numbers are valid: check
/// each one.
struct Introduction {
  static constexpr std::size_t kMostData = layout::kMostDataBytes;

  std::uint16_t node = 0;
  std::uint16_t port = 0;  ///< 0: a connector, which binds no port
  std::uint64_t segment_bytes = 0;
  Greeting greeting{};
  std::vector<std::byte>
      data;  ///< opaque here, at most kMostData bytes; a listener's has the port of its data endpoints
};

}  // namespace wherry::fabric::ofi
