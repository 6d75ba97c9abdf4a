// SPDX-License-Identifier: Apache-2.0
// What the two sides of a connection that carries messages tell each other, and what comes of it. May include: base,
// layout, fabric.
#pragma once

#include <cstdint>
#include <memory>

#include <wherry/message.hpp>

#include "fabric/fabric.hpp"
#include "message/publisher_connection.hpp"
#include "message/subscriber_connection.hpp"

namespace wherry::message {

/// What a publisher brings into a connection: its pool, and a page with a ring for what is given back.
fabric::Offer publishers_offer(const std::shared_ptr<memory::SharedMemory>& pool);
/// What a subscriber brings: a page with a queue of `places`.
fabric::Offer subscribers_offer(std::uint32_t places, Overflow overflow);

/// Both throw Error(EPROTO) if the peer is not the other role of this version.
std::unique_ptr<PublisherConnection> make_publisher_connection(std::unique_ptr<fabric::Connection> connection);
SubscriberConnectionPtr make_subscriber_connection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places,
                                                   Overflow overflow);

}  // namespace wherry::message
