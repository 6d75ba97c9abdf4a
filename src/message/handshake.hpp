// SPDX-License-Identifier: Apache-2.0
// The greetings of publisher and subscriber, and the connection objects made from them.
//
// May include: base, layout, fabric.
#pragma once

#include <cstdint>
#include <memory>

#include <wherry/message.hpp>

#include "fabric/fabric.hpp"
#include "message/publisher_connection.hpp"
#include "message/subscriber_connection.hpp"

namespace wherry::message {

/// Makes a publisher's offer: its pool, and a page with a ring for returned tickets.
fabric::Offer publishers_offer(const std::shared_ptr<memory::SharedMemory>& pool);
/// Makes a subscriber's offer: a page with a queue of `places`.
fabric::Offer subscribers_offer(std::uint32_t places, Overflow overflow);

/// Both throw Error(EPROTO) if the peer does not have the other role, or another version; ENOTSUP if the fabric cannot
/// map its memory.
std::unique_ptr<PublisherConnection> make_publisher_connection(std::unique_ptr<fabric::Connection> connection);
SubscriberConnectionPtr make_subscriber_connection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places,
                                                   Overflow overflow);

}  // namespace wherry::message
