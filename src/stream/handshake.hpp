// SPDX-License-Identifier: Apache-2.0
// What the two sides of a stream tell each other in the fabric's handshake, and the stream that comes of it.
#pragma once

#include <memory>
#include <string_view>

#include <wherry/stream.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"

namespace wherry::stream {

/// What this side brings into a connection: a segment for a page and a ring of `capacity` bytes, and behind it, if it
/// wants windows, what they need.
fabric::Offer offer_of(std::size_t capacity, bool windows = false);

/// Makes the stream of an established connection. Throws Error(EPROTO) if the peer's greeting makes no sense.
Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, std::size_t own_capacity,
                   std::string_view fabric);

}  // namespace wherry::stream
