// SPDX-License-Identifier: Apache-2.0
// A publisher's connection to one subscriber.
//
// May include: base, layout, fabric.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"
#include "message/queue.hpp"
#include "message/slabs.hpp"

namespace wherry::message {

class PublisherConnection {
 public:
  /// @param places  of the queue, as the subscriber's greeting says
  /// @param drops  the subscriber lets the oldest message be dropped. Throws std::bad_alloc.
  PublisherConnection(std::unique_ptr<fabric::Connection> connection, std::uint32_t places, bool drops);

  /// Whether push() needs no wait: there is room, the oldest may be dropped, or the subscriber no longer serves.
  bool ready(Slabs& slabs) noexcept { return drops_ || queue_.has_room() || reclaim(slabs) != 0 || !serves(); }
  /// Publishes a message, and wakes the subscriber if it sleeps. Only when ready(). False: it was not published.
  bool push(Slabs& slabs, Slabs::Block block, std::size_t bytes) noexcept;
  /// Takes back the messages that the subscriber has released. Returns how many.
  std::size_t reclaim(Slabs& slabs) noexcept;
  /// Takes back all messages of a subscriber that is gone or broke the protocol.
  void reclaim_all(Slabs& slabs) noexcept {
    queue_.reclaim_all([&](Slabs::Block block) { slabs.drop(block); });
  }
  /// Called before this side sleeps: sets how many returns are worth a wake-up, half of those in flight or any.
  void want_half() noexcept { want(queue_.returned() + (queue_.in_flight() + 1) / 2); }
  void want_any() noexcept { want(0); }
  /// Tells the subscriber that nothing will follow.
  void finish() noexcept;
  /// Checks whether the subscriber still lives. Costs a system call.
  void look() noexcept { gone_ = gone_ || connection_->peer_gone(); }

  /// True while the subscriber is not known to have left, died or broken the protocol.
  [[nodiscard]] bool serves() const noexcept {
    // MESSAGE-CLOSED acquire: pairs with the release in SubscriberConnection::leave.
    return !broken_ && !gone_ && own_page().closed.load(std::memory_order_acquire) == 0;
  }
  /// True if the subscriber is gone or broke the protocol: messages that it holds will not be returned.
  [[nodiscard]] bool over() const noexcept { return broken_ || gone_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return queue_.in_flight(); }
  [[nodiscard]] fabric::Connection& connection() const noexcept { return *connection_; }

 private:
  [[nodiscard]] const layout::MessageOutbox& own_page() const noexcept {
    return *reinterpret_cast<const layout::MessageOutbox*>(connection_->segment().data());
  }
  void want(std::uint64_t returned) noexcept { peers_page_.wanted.store(returned, std::memory_order_relaxed); }
  bool make_room(Slabs& slabs) noexcept;

  std::unique_ptr<fabric::Connection> connection_;
  layout::MessageInbox& peers_page_;
  OutQueue queue_;
  std::uint64_t dropped_ = 0;
  bool drops_;
  bool broken_ = false;
  bool gone_ = false;
};

}  // namespace wherry::message
