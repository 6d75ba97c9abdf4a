// SPDX-License-Identifier: Apache-2.0
#include "stream/handshake.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "layout/message_page.hpp"
#include "ring/ring.hpp"
#include "stream/impl.hpp"
#include "window/space.hpp"

namespace wherry::stream {
namespace {

layout::StreamGreeting greeting_in(const fabric::Greeting& bytes) {
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  return greeting;
}

bool is_of_a_stream(const layout::StreamGreeting& greeting) {
  return greeting.magic == layout::kStreamMagic && greeting.version == layout::kStreamVersion;
}

/// Returns what is invalid in a stream's greeting; null if it is valid, or no stream's. The greeting of another kind of
/// peer is not rejected here: that peer learns from the answer what it has connected to.
const char* objection(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  const layout::StreamGreeting greeting = greeting_in(bytes);
  if (!is_of_a_stream(greeting)) return nullptr;
  if (!std::has_single_bit(greeting.capacity) || greeting.capacity < ring::kMinCapacity ||
      greeting.capacity > ring::kMaxCapacity) {
    return "its ring's capacity is not a power of two from 4 KiB to 1 GiB";
  }
  if (!std::has_single_bit(greeting.most) || greeting.most < ring::kMinCapacity) {
    return "its limit on the use of a ring is not a power of two from 4 KiB up";
  }
  if (greeting.capacity + layout::kStreamPageBytes > segment_bytes) return "its ring is larger than its segment";
  const bool windows = (greeting.features & layout::kStreamWindows) != 0;
  if (windows && greeting.capacity + layout::kStreamPageBytes + window::Space::kBytes > segment_bytes) {
    return "its segment has no room for its windows";
  }
  return nullptr;
}

/// Explains why a greeting is not a stream's, or is invalid.
std::string advice_on_greeting(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  const layout::StreamGreeting greeting = greeting_in(bytes);
  if (greeting.magic == layout::kMessageMagic)
    return "this port has a Publisher or a Subscriber; connect the other one to it, or use another port";
  if (greeting.magic != layout::kStreamMagic) return "the program at this port has no Wherry stream; use another port";
  const char* const wrong = objection(bytes, segment_bytes);
  return std::string(wrong != nullptr ? wrong : "the peer is no stream of this version of Wherry") +
         "; use one version on both sides";
}

}  // namespace

fabric::Offer offer_of(const Rings& rings) {
  const layout::StreamGreeting greeting{.magic = layout::kStreamMagic,
                                        .version = layout::kStreamVersion,
                                        .capacity = rings.own,
                                        .features = rings.windows ? layout::kStreamWindows : 0,
                                        .most = rings.peers,
                                        .reserved = {}};
  const std::size_t behind = rings.windows ? window::Space::kBytes : 0;
  fabric::Offer offer{.segment_bytes = layout::kStreamPageBytes + rings.own + behind,
                      .memory = nullptr,
                      .greeting = {},
                      .exposes = rings.windows,
                      .objection = objection};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

/// Each ring is used up to its sender's limit; memory beyond it is never touched, and has no pages.
Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, const Rings& rings,
                   std::string_view fabric) {
  const layout::StreamGreeting peers = greeting_in(connection->peer_greeting());
  if (!is_of_a_stream(peers) || objection(connection->peer_greeting(), connection->remote_bytes()) != nullptr) {
    throw Error(EPROTO, "open a stream with", connection->peer().address.to_string(),
                advice_on_greeting(connection->peer_greeting(), connection->remote_bytes()));
  }
  auto* page = reinterpret_cast<layout::StreamPage*>(connection->segment().data());
  page->version = layout::kStreamVersion;
  const std::size_t receives = std::min<std::size_t>(rings.own, peers.most);
  const std::size_t sends = std::min<std::size_t>(peers.capacity, rings.peers);
  page->capacity = receives;
  const std::size_t end = layout::kStreamPageBytes + rings.own;
  const bool windows = connection->segment().size() > end && (peers.features & layout::kStreamWindows) != 0;
  auto impl = std::make_unique<Stream::Impl>(std::move(connection), std::move(local), sends, receives, fabric);
  if (windows)
    impl->windows = std::make_unique<window::Space>(*impl->connection, end, layout::kStreamPageBytes + peers.capacity);
  return Stream(std::move(impl));
}

}  // namespace wherry::stream
