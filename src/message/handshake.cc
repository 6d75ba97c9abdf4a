// SPDX-License-Identifier: Apache-2.0
#include "message/handshake.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "layout/stream_page.hpp"

namespace wherry::message {
namespace {

using layout::MessageGreeting;
using layout::MessageOverflow;
using layout::MessageRole;

constexpr std::size_t kPage = 4096;

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

MessageGreeting greeting_in(const fabric::Greeting& bytes) {
  MessageGreeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  return greeting;
}

bool is_of_a_message(const MessageGreeting& greeting) {
  return greeting.magic == layout::kMessageMagic && greeting.version == layout::kMessageVersion;
}

/// Returns what is invalid in a greeting of that role; null if it is valid, or of another role. The size of a place
/// depends on the role.
template <MessageRole kRole>
const char* objection(const fabric::Greeting& bytes, std::size_t segment_bytes) {
  constexpr std::size_t kPlaceBytes =
      kRole == MessageRole::subscriber ? sizeof(layout::MessageEntry) : sizeof(layout::MessageReturn);
  const MessageGreeting greeting = greeting_in(bytes);
  if (!is_of_a_message(greeting) || greeting.role != static_cast<std::uint32_t>(kRole)) return nullptr;
  if (!std::has_single_bit(greeting.queue) || greeting.queue > layout::kMessageMaxQueue) {
    return "its queue is not a power of two from 1 to 65536 messages";
  }
  if (layout::kMessagePageBytes + greeting.queue * kPlaceBytes > segment_bytes) {
    return "its queue is larger than its segment";
  }
  return nullptr;
}

fabric::Offer offer_of(MessageRole role, MessageOverflow overflow, std::uint64_t places, std::size_t place_bytes) {
  const MessageGreeting greeting{.magic = layout::kMessageMagic,
                                 .version = layout::kMessageVersion,
                                 .role = static_cast<std::uint32_t>(role),
                                 .overflow = static_cast<std::uint32_t>(overflow),
                                 .queue = places,
                                 .reserved = {}};
  fabric::Offer offer{.segment_bytes = layout::kMessagePageBytes + whole_pages(places * place_bytes)};
  static_assert(sizeof greeting == sizeof offer.greeting);
  std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
  return offer;
}

/// Explains why a greeting is not that of a publisher or subscriber of this version.
std::string advice_on_magic(std::uint32_t magic) {
  if (magic == layout::kStreamMagic) return "this port has a stream; connect a stream to it, or use another port";
  if (magic != layout::kMessageMagic)
    return "the program at this port does not exchange Wherry messages; use another port";
  return "the peer does not exchange messages of this version of Wherry; use one version on both sides";
}

/// Returns the peer's greeting, checked: it has the expected role, and its queue fits its segment. Throws Error.
template <MessageRole kExpected>
MessageGreeting checked(const fabric::Connection& connection) {
  const MessageGreeting greeting = greeting_in(connection.peer_greeting());
  const std::string peer = connection.peer().address.to_string();
  if (!is_of_a_message(greeting)) {
    throw Error(EPROTO, "exchange messages with", peer, advice_on_magic(greeting.magic));
  }
  if (const char* wrong = objection<kExpected>(connection.peer_greeting(), connection.remote_bytes())) {
    throw Error(EPROTO, "exchange messages with", peer, std::string(wrong) + "; use one version on both sides");
  }
  if (greeting.role != static_cast<std::uint32_t>(kExpected)) {
    throw Error(EPROTO, "exchange messages with", peer,
                kExpected == MessageRole::publisher ? "two subscribers met; connect one to a publisher"
                                                    : "two publishers met; connect one to a subscriber");
  }
  if (connection.map() == nullptr) {
    throw Error(ENOTSUP, "exchange messages with", peer,
                "the fabric cannot map a peer's memory; use one that can, such as shm, or a stream");
  }
  return greeting;
}

}  // namespace

fabric::Offer publishers_offer(const std::shared_ptr<memory::SharedMemory>& pool) {
  fabric::Offer offer =
      offer_of(MessageRole::publisher, MessageOverflow::wait, layout::kMessageMaxQueue, sizeof(layout::MessageReturn));
  offer.shared = pool;
  offer.objection = objection<MessageRole::subscriber>;
  return offer;
}

fabric::Offer subscribers_offer(std::uint32_t places, Overflow overflow) {
  fabric::Offer offer = offer_of(MessageRole::subscriber,
                                 overflow == Overflow::wait ? MessageOverflow::wait : MessageOverflow::drop_oldest,
                                 places, sizeof(layout::MessageEntry));
  offer.objection = objection<MessageRole::publisher>;
  return offer;
}

std::unique_ptr<PublisherConnection> make_publisher_connection(std::unique_ptr<fabric::Connection> connection) {
  const MessageGreeting peer = checked<MessageRole::subscriber>(*connection);
  auto* page = reinterpret_cast<layout::MessageOutbox*>(connection->segment().data());
  page->version = layout::kMessageVersion;
  const bool drops = peer.overflow == static_cast<std::uint32_t>(MessageOverflow::drop_oldest);
  return std::make_unique<PublisherConnection>(std::move(connection), static_cast<std::uint32_t>(peer.queue), drops);
}

SubscriberConnectionPtr make_subscriber_connection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places,
                                                   Overflow overflow) {
  const MessageGreeting peer = checked<MessageRole::publisher>(*connection);
  if (peer.queue < places) {
    throw Error(EPROTO, "exchange messages with", connection->peer().address.to_string(),
                "the publisher cannot hold the returns of a queue of this size; use a smaller queue");
  }
  auto* page = reinterpret_cast<layout::MessageInbox*>(connection->segment().data());
  page->version = layout::kMessageVersion;
  return SubscriberConnectionPtr(
      new SubscriberConnection(std::move(connection), places, overflow == Overflow::drop_oldest));
}

}  // namespace wherry::message
