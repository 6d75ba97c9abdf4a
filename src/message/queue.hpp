// SPDX-License-Identifier: Apache-2.0
// The two ends of the message queue from one publisher to one subscriber: views over words that they do not own. They
// know neither a fabric nor the pool.
//
// May include: base, layout.
//
// A message in flight (published, not yet returned) has a ticket; there are as many tickets as places in the queue. The
// publisher keeps in private memory what each ticket stands for. A subscriber returns tickets in any order. Only
// tickets of messages in flight are accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "layout/message_page.hpp"

namespace wherry::message {

/// The publisher's end.
class OutQueue {
 public:
  using Block = std::uint32_t;

  struct Words {
    layout::MessageEntry* entries = nullptr;         ///< in the subscriber's memory
    const layout::MessageReturn* returns = nullptr;  ///< in this side's memory
    layout::Word* head = nullptr;                    ///< with drop_oldest only
  };
  enum class Room : std::uint8_t { made, none, broken };

  /// `places`: a power of two, at most kMessageMaxQueue. Throws std::bad_alloc.
  OutQueue(const Words& words, std::uint32_t places);

  [[nodiscard]] bool has_room() const noexcept { return !free_tickets_.empty(); }
  [[nodiscard]] std::size_t in_flight() const noexcept { return places_ - free_tickets_.size(); }
  /// Number of messages returned so far.
  [[nodiscard]] std::uint64_t returned() const noexcept { return returned_; }
  /// Number of entries pushed so far.
  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_; }

  /// Publishes a message. Only if has_room(). `offset` is a multiple of kMessageGrain; the caller has checked `offset`
  /// and `bytes` against its pool.
  void push(Block block, std::size_t offset, std::size_t bytes) noexcept;
  /// Calls `give_back(block)` for each returned message. False: the subscriber returned a ticket that it did not hold.
  template <class GiveBack>
  bool reclaim(GiveBack&& give_back) noexcept {
    std::uint16_t ticket = 0;
    while (next_return(ticket)) {
      if (!may_return(ticket)) return false;
      give_back(free_ticket(ticket));
    }
    return true;
  }
  /// With drop_oldest only: takes back the oldest message that the subscriber has not taken. `none`: it has taken all.
  template <class GiveBack>
  Room drop_oldest(GiveBack&& give_back) noexcept {
    std::uint16_t ticket = 0;
    const Room room = seize_oldest(ticket);
    if (room == Room::made) give_back(free_ticket(ticket));
    return room;
  }
  /// Takes back all messages of a subscriber that is gone or broke the protocol.
  template <class GiveBack>
  void reclaim_all(GiveBack&& give_back) noexcept {
    for (std::uint32_t ticket = 0; ticket < places_; ++ticket) {
      if (tickets_[ticket].block != kFree) give_back(free_ticket(static_cast<std::uint16_t>(ticket)));
    }
  }

 private:
  static constexpr Block kFree = UINT32_MAX;

  struct Ticket {
    Block block = kFree;
    std::uint64_t position = 0;
  };

  bool next_return(std::uint16_t& ticket) noexcept;
  bool may_return(std::uint16_t ticket) noexcept;
  Block free_ticket(std::uint16_t ticket) noexcept {
    free_tickets_.push_back(ticket);  // never allocates: its capacity is `places_`
    return std::exchange(tickets_[ticket].block, kFree);
  }
  bool refresh_head() noexcept;
  Room seize_oldest(std::uint16_t& ticket) noexcept;

  Words words_;
  std::uint32_t places_;
  unsigned places_shift_;
  std::vector<Ticket> tickets_;
  std::vector<std::uint16_t> free_tickets_;  ///< a stack
  std::vector<std::uint16_t> queued_;        ///< with drop_oldest only: the ticket at each place
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  ///< with drop_oldest only: as last seen
  std::uint64_t returned_ = 0;
};

/// The subscriber's end.
class InQueue {
 public:
  struct Words {
    const layout::MessageEntry* entries = nullptr;  ///< in this side's memory
    layout::MessageReturn* returns = nullptr;       ///< in the publisher's memory
    layout::Word* head = nullptr;                   ///< with drop_oldest only
  };
  struct Entry {
    std::size_t offset = 0;  ///< the publisher's value: the caller must check it
    std::size_t bytes = 0;   ///< likewise
    std::uint16_t ticket = 0;
  };
  enum class Look : std::uint8_t { nothing, message, broken };

  InQueue(const Words& words, std::uint32_t places);

  /// Takes the next message.
  Look take(Entry& entry) noexcept {
    if (words_.head != nullptr) return contend(entry);
    const Look look = read(position_, entry);
    if (look == Look::message) ++position_;
    return look;
  }
  /// Whether take() would return a message or `broken`.
  [[nodiscard]] bool waiting() noexcept;
  void give_back(std::uint16_t ticket) noexcept {
    auto& place = words_.returns[returned_ & (places_ - 1)];
    const std::uint64_t lap = (returned_ >> places_shift_) + 1;
    ++returned_;
    // MESSAGE-RETURN release: the message was read before; pairs with OutQueue::next_return.
    place.store(lap << layout::kMessageTicketBits | ticket, std::memory_order_release);
  }
  /// Number of entries taken or dropped so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Number of messages returned so far.
  [[nodiscard]] std::uint64_t returned() const noexcept { return returned_; }
  [[nodiscard]] std::uint32_t places() const noexcept { return places_; }

 private:
  static constexpr int kMostRaces = 64;

  Look read(std::uint64_t position, Entry& entry) const noexcept {
    const auto& place = words_.entries[position & (places_ - 1)];
    // MESSAGE-ENTRY acquire: pairs with the release in OutQueue::push.
    const std::uint64_t what = place.what.load(std::memory_order_acquire);
    if (what >> layout::kMessageLengthBits != lap_of(position)) return Look::nothing;
    const std::uint64_t where = place.where.load(std::memory_order_relaxed);
    entry.bytes = what & ((std::uint64_t{1} << layout::kMessageLengthBits) - 1);
    entry.ticket = static_cast<std::uint16_t>(where & (layout::kMessageMaxQueue - 1));
    entry.offset = (where >> layout::kMessageTicketBits) * layout::kMessageGrain;
    return Look::message;
  }
  [[nodiscard]] std::uint64_t lap_of(std::uint64_t position) const noexcept {
    return ((position >> places_shift_) + 1) & (UINT64_MAX >> layout::kMessageLengthBits);
  }
  Look contend(Entry& entry) noexcept;

  Words words_;
  std::uint32_t places_;
  unsigned places_shift_;
  std::uint64_t position_ = 0;
  std::uint64_t returned_ = 0;
};

}  // namespace wherry::message
