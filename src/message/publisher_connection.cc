// SPDX-License-Identifier: Apache-2.0
#include "message/publisher_connection.hpp"

#include <utility>

namespace wherry::message {
namespace {

OutQueue::Words outbound_words(const fabric::Connection& connection, bool drops) {
  std::byte* const remote = connection.map();
  auto& page = *reinterpret_cast<layout::MessageInbox*>(remote);
  return {.entries = reinterpret_cast<layout::MessageEntry*>(remote + layout::kMessagePageBytes),
          .returns =
              reinterpret_cast<const layout::MessageReturn*>(connection.segment().data() + layout::kMessagePageBytes),
          .head = drops ? &page.head : nullptr};
}

}  // namespace

PublisherConnection::PublisherConnection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places,
                                         bool drops)
    : connection_(std::move(connection)),
      peers_page_(*reinterpret_cast<layout::MessageInbox*>(connection_->map())),
      queue_(outbound_words(*connection_, drops), places),
      drops_(drops) {}

std::size_t PublisherConnection::reclaim(Slabs& slabs) noexcept {
  std::size_t count = 0;
  const bool good = queue_.reclaim([&](Slabs::Block block) {
    slabs.drop(block);
    ++count;
  });
  broken_ = broken_ || !good;
  return count;
}

bool PublisherConnection::make_room(Slabs& slabs) noexcept {
  if (queue_.has_room() || reclaim(slabs) != 0) return true;
  if (!drops_ || broken_) return false;
  const auto room = queue_.drop_oldest([&](Slabs::Block block) { slabs.drop(block); });
  broken_ = room == OutQueue::Room::broken;
  if (broken_) return false;
  peers_page_.dropped.store(++dropped_, std::memory_order_relaxed);
  return room == OutQueue::Room::made;
}

bool PublisherConnection::push(Slabs& slabs, Slabs::Block block, std::size_t bytes) noexcept {
  if (!serves() || !make_room(slabs)) return false;
  slabs.share(block);
  queue_.push(block, slabs.offset(block), bytes);
  connection_->announce(fabric::Bell::data);
  return true;
}

void PublisherConnection::finish() noexcept {
  // MESSAGE-FINISHED release: after the last entry; pairs with the acquire in SubscriberConnection::take.
  peers_page_.finished.store(queue_.tail() + 1, std::memory_order_release);
  connection_->announce(fabric::Bell::data);
}

}  // namespace wherry::message
