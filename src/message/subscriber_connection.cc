// SPDX-License-Identifier: Apache-2.0
#include "message/subscriber_connection.hpp"

#include <utility>

namespace wherry::message {
namespace {

InQueue::Words inbound_words(const fabric::Connection& connection, bool drops) {
  std::byte* const own = connection.segment().data();
  auto& page = *reinterpret_cast<layout::MessageInbox*>(own);
  return {.entries = reinterpret_cast<const layout::MessageEntry*>(own + layout::kMessagePageBytes),
          .returns = reinterpret_cast<layout::MessageReturn*>(connection.map() + layout::kMessagePageBytes),
          .head = drops ? &page.head : nullptr};
}

}  // namespace

SubscriberConnection::SubscriberConnection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places,
                                           bool drops)
    : connection_(std::move(connection)),
      shown_(connection_->shown()),
      queue_(inbound_words(*connection_, drops), places) {}

SubscriberConnection::Look SubscriberConnection::last_look(std::uint64_t finished) const noexcept {
  if (finished == 0) return Look::lost;
  return finished - 1 == queue_.position() ? Look::end : Look::broken;
}

void SubscriberConnection::leave() noexcept {
  if (!origin_.inherited()) announce_closed();
  left_ = true;
  if (held_ == 0) delete this;
}

void SubscriberConnection::announce_closed() noexcept {
  // MESSAGE-CLOSED release: pairs with the acquire in PublisherConnection::serves.
  reinterpret_cast<layout::MessageOutbox*>(connection_->map())->closed.store(1, std::memory_order_release);
  InQueue::Entry entry;
  // At most one queue's length: a publisher that keeps publishing does not keep this loop running.
  for (std::uint32_t i = 0; i < queue_.places() && queue_.take(entry) == InQueue::Look::message; ++i) {
    queue_.give_back(entry.ticket);
  }
  connection_->announce(fabric::Bell::space);
}

}  // namespace wherry::message
