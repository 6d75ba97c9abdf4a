// SPDX-License-Identifier: Apache-2.0
#include "stream/handshake.hpp"

#include <bit>
#include <cerrno>
#include <cstring>

#include "ring/ring.hpp"
#include "stream/impl.hpp"

namespace wherry::stream {
namespace {

/// The capacity of the peer's ring, or 0 if it cannot be one.
std::size_t capacity_in(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  const bool good = greeting.magic == layout::kStreamMagic && greeting.version == layout::kStreamVersion &&
                    std::has_single_bit(greeting.capacity) && greeting.capacity >= ring::kMinCapacity &&
                    greeting.capacity <= ring::kMaxCapacity &&
                    greeting.capacity + layout::kStreamPageBytes <= segment_bytes;
  return good ? greeting.capacity : 0;
}

}  // namespace

fabric::Offer offer_of(std::size_t capacity) {
  const layout::StreamGreeting greeting{
      .magic = layout::kStreamMagic, .version = layout::kStreamVersion, .capacity = capacity, .reserved = {}};
  fabric::Offer offer{.segment_bytes = layout::kStreamPageBytes + capacity, .memory = nullptr, .greeting = {}};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

Stream make_stream(std::unique_ptr<fabric::Connection> connection, Address local, std::size_t capacity,
                   std::string_view fabric) {
  const std::size_t peers = capacity_in(connection->peer_greeting(), connection->remote_bytes());
  if (peers == 0) {
    throw Error(EPROTO, "open a stream with", connection->peer().address.to_string(),
                "the peer is no stream of this version of Wherry; use one version on both sides");
  }
  auto* page = reinterpret_cast<layout::StreamPage*>(connection->segment().data());
  page->version = layout::kStreamVersion;
  page->capacity = capacity;
  return Stream(std::make_unique<Stream::Impl>(std::move(connection), std::move(local), peers, capacity, fabric));
}

}  // namespace wherry::stream
