// SPDX-License-Identifier: Apache-2.0
// The sender of one connection to another host. It sends the program's puts, gets and words in order. The fabric's own
// messages go first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/link_bells.hpp"
#include "fabric/ofi/word_slots.hpp"
#include "fabric/send_queue.hpp"

namespace wherry::fabric::ofi {

/// One thread at a time.
class LinkSender {
 public:
  using Item = SendQueue::Item;
  /// A flush is over when three conditions hold: the peer has acknowledged its number; everything sent up to it is
  /// complete locally; and all reads requested before it have arrived. The acknowledgement alone is only the peer's
  /// claim: the caller must not get memory back that the endpoint may still read.
  struct Flush {
    std::uint64_t number;
    std::uint64_t reads;
  };

  explicit LinkSender(LinkBells& bells) : bells_(bells) {}

  [[nodiscard]] bool has_room() const { return queue_.bytes() < kMostQueued && queue_.size() < kMostItems; }
  /// Takes a prefix. 0 if the queue is full; rings `space` once it has room.
  std::size_t put(std::uint64_t offset, std::span<const std::byte> source);
  /// Takes the whole item.
  void push(Item item);
  void say(const layout::LinkMessage& message) { messages_.push_back(message); }
  /// Queues an answer. False if too many messages wait: the peer asks, but does not receive answers.
  bool answer(const layout::LinkMessage& message);
  void clear();

  Flush begin_flush();
  [[nodiscard]] bool is_over(const Flush& flush) const {
    return std::min(flushed_, completed_flush_) >= flush.number && reads_done_ >= flush.reads;
  }
  /// Handles the peer's acknowledgement of a flush. False if that flush has not been sent.
  bool on_flushed(std::uint64_t number);
  /// Handles the local completion of a write or message, in the order of sending. Returns whether that may end a flush.
  bool on_sent();
  void on_read() { --in_flight_, ++reads_done_; }

  /// Sends until nothing is queued or the endpoint is full. False if the endpoint is dead.
  /// @param peer  the peer's segment; empty while it is unknown: then only messages are sent
  bool send(Endpoint& endpoint, const std::optional<RemotePlace>& peer);

 private:
  using Word = SendQueue::Word;
  struct FlushPoint {
    std::uint64_t pushed;  ///< the flush is sent after the items up to this push
    std::uint64_t number;
  };
  struct SentFlush {
    std::uint64_t number;
    std::uint64_t posted;  ///< its number among all writes and messages
  };

  static constexpr std::size_t kMostQueued = std::size_t{1} << 20;
  static constexpr std::size_t kMostItems = 256;
  static constexpr std::size_t kMostMessages = 4096;

  bool send_next(Endpoint& endpoint, const std::optional<RemotePlace>& peer);
  bool send_item(Endpoint& endpoint, const Item& item, const RemotePlace& segment);
  bool write_item(Endpoint& endpoint, const Item& item, const RemotePlace& segment, const RemotePlace& base);
  bool defines_slot(const Endpoint& endpoint, const Item& item);
  bool posted(Endpoint::Posted result);
  void take_item();
  void take_message();

  LinkBells& bells_;
  SendQueue queue_;
  std::deque<layout::LinkMessage> messages_;  // sent before the items in queue_
  OwnSlots slots_;
  std::size_t in_flight_ = 0;
  bool dead_ = false;
  bool wants_room_ = false;
  std::uint64_t sent_ = 0;  // number of the last push that has been sent
  std::uint64_t reads_pushed_ = 0, reads_done_ = 0;
  std::deque<FlushPoint> flushes_;
  std::deque<SentFlush> sent_flushes_;
  std::uint64_t posted_ = 0, completed_ = 0;  // writes and messages
  std::uint64_t flush_number_ = 0;            // the last flush begun
  std::uint64_t sent_flush_ = 0;              // the last flush sent to the peer
  std::uint64_t completed_flush_ = 0;         // the last flush up to which everything sent is complete locally
  std::uint64_t flushed_ = 0;                 // the last flush that the peer has acknowledged
};

}  // namespace wherry::fabric::ofi
