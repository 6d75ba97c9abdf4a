// SPDX-License-Identifier: Apache-2.0
#include "stream/handshake.hpp"

#include <bit>
#include <cerrno>
#include <cstring>

#include "ring/ring.hpp"
#include "stream/impl.hpp"
#include "window/space.hpp"

namespace wherry::stream {
namespace {

/// What the peer says of its side; a capacity of 0 if it cannot be true.
layout::StreamGreeting greeting_in(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  const std::size_t behind = (greeting.features & layout::kStreamWindows) != 0 ? window::Space::kBytes : 0;
  const bool good = greeting.magic == layout::kStreamMagic && greeting.version == layout::kStreamVersion &&
                    std::has_single_bit(greeting.capacity) && greeting.capacity >= ring::kMinCapacity &&
                    greeting.capacity <= ring::kMaxCapacity &&
                    greeting.capacity + layout::kStreamPageBytes + behind <= segment_bytes;
  return good ? greeting : layout::StreamGreeting{};
}

}  // namespace

fabric::Offer offer_of(std::size_t capacity, bool windows) {
  const layout::StreamGreeting greeting{.magic = layout::kStreamMagic,
                                        .version = layout::kStreamVersion,
                                        .capacity = capacity,
                                        .features = windows ? layout::kStreamWindows : 0,
                                        .reserved = {}};
  fabric::Offer offer{.segment_bytes = layout::kStreamPageBytes + capacity + (windows ? window::Space::kBytes : 0),
                      .memory = nullptr,
                      .greeting = {},
                      .exposes = windows};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, std::size_t capacity,
                   std::string_view fabric) {
  const layout::StreamGreeting peers = greeting_in(connection->peer_greeting(), connection->remote_bytes());
  if (peers.capacity == 0) {
    throw Error(EPROTO, "open a stream with", connection->peer().address.to_string(),
                "the peer is no stream of this version of Wherry; use one version on both sides");
  }
  auto* page = reinterpret_cast<layout::StreamPage*>(connection->segment().data());
  page->version = layout::kStreamVersion;
  page->capacity = capacity;
  const std::size_t end = layout::kStreamPageBytes + capacity;
  const bool windows = connection->segment().size() > end && (peers.features & layout::kStreamWindows) != 0;
  auto impl = std::make_unique<Stream::Impl>(std::move(connection), std::move(local), peers.capacity, capacity, fabric);
  if (windows) impl->windows.emplace(*impl->connection, end, layout::kStreamPageBytes + peers.capacity);
  return Stream(std::move(impl));
}

}  // namespace wherry::stream
