// SPDX-License-Identifier: Apache-2.0
// The greeting that the two sides of a stream exchange in the fabric's handshake, and the stream made from it.
#pragma once

#include <memory>
#include <string_view>

#include <wherry/stream.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "ring/ring.hpp"

namespace wherry::stream {

/// The rings of one side's offer; all sizes are powers of two.
struct Rings {
  std::size_t own;                         ///< capacity of the ring that it receives into
  std::size_t peers = ring::kMaxCapacity;  ///< most bytes of the peer's ring that it uses
  bool windows = false;
};

/// Makes this side's offer: a segment with a page and its ring, then, with `windows`, the memory that windows need.
fabric::Offer offer_of(const Rings& rings);

/// Makes a stream of an established connection that was offered with `rings`. Throws Error(EPROTO) if the peer's
/// greeting is invalid.
Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, const Rings& rings,
                   std::string_view fabric);

}  // namespace wherry::stream
