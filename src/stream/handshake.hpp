// SPDX-License-Identifier: Apache-2.0
// What the two sides of a stream tell each other in the fabric's handshake, and the stream that comes of it.
#pragma once

#include <memory>
#include <string_view>

#include <wherry/stream.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "ring/ring.hpp"

namespace wherry::stream {

/// What a side says of its rings: both are powers of two.
struct Rings {
  std::size_t own;                         ///< capacity of the one it receives into
  std::size_t peers = ring::kMaxCapacity;  ///< so much of the peer's it uses at most
  bool windows = false;
};

/// What this side brings into a connection: a segment for a page and its ring, and behind it, if it wants windows, what
/// they need.
fabric::Offer offer_of(const Rings& rings);

/// Makes the stream of an established connection that was offered with `rings`. Throws Error(EPROTO) if the peer's
/// greeting makes no sense.
Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, const Rings& rings,
                   std::string_view fabric);

}  // namespace wherry::stream
