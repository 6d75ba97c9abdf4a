// SPDX-License-Identifier: Apache-2.0
#include "message/queue.hpp"

#include <bit>

namespace wherry::message {

OutQueue::OutQueue(const Words& words, std::uint32_t places)
    : words_(words),
      places_(places),
      places_shift_(static_cast<unsigned>(std::bit_width(places) - 1)),
      tickets_(places),
      queued_(words.head == nullptr ? 0 : places) {
  free_tickets_.reserve(places);
  for (std::uint32_t ticket = places; ticket > 0; --ticket) {
    free_tickets_.push_back(static_cast<std::uint16_t>(ticket - 1));
  }
}

void OutQueue::push(Block block, std::size_t offset, std::size_t bytes) noexcept {
  const std::uint16_t ticket = free_tickets_.back();
  free_tickets_.pop_back();
  tickets_[ticket] = {block, tail_};
  const std::size_t place = tail_ & (places_ - 1);
  if (words_.head != nullptr) queued_[place] = ticket;
  // The place is not being read: a free ticket means that a message of the last lap was returned, and by then all
  // places before it had been read. With drop_oldest the place may be in use; its reader then finds that the head has
  // moved past it.
  auto& entry = words_.entries[place];
  entry.where.store(offset / layout::kMessageGrain << layout::kMessageTicketBits | ticket, std::memory_order_relaxed);
  const std::uint64_t lap = (tail_ >> places_shift_) + 1;
  // MESSAGE-ENTRY release: the payload and `where`; pairs with the acquire in InQueue::read.
  entry.what.store(lap << layout::kMessageLengthBits | bytes, std::memory_order_release);
  ++tail_;
}

bool OutQueue::next_return(std::uint16_t& ticket) noexcept {
  const std::uint64_t lap = (returned_ >> places_shift_) + 1;
  // MESSAGE-RETURN acquire: pairs with the release in InQueue::give_back.
  const std::uint64_t word = words_.returns[returned_ & (places_ - 1)].load(std::memory_order_acquire);
  if (word >> layout::kMessageTicketBits != lap) return false;
  ++returned_;
  ticket = static_cast<std::uint16_t>(word & (layout::kMessageMaxQueue - 1));
  return true;
}

bool OutQueue::may_return(std::uint16_t ticket) noexcept {
  if (ticket >= places_ || tickets_[ticket].block == kFree) return false;
  if (words_.head == nullptr || tickets_[ticket].position < head_) return true;
  // A message that still waits in the queue would come back a second time, when it is dropped.
  return refresh_head() && tickets_[ticket].position < head_;
}

bool OutQueue::refresh_head() noexcept {
  const std::uint64_t head = words_.head->load(std::memory_order_acquire);  // MESSAGE-HEAD
  if (head < head_ || head > tail_) return false;
  head_ = head;
  return true;
}

/// Each pass but the last moves the head forward, never past the tail. So the loop ends whatever the subscriber does.
OutQueue::Room OutQueue::seize_oldest(std::uint16_t& ticket) noexcept {
  if (!refresh_head()) return Room::broken;
  while (head_ != tail_) {
    std::uint64_t head = head_;
    // MESSAGE-HEAD: the side that moves the head past an entry owns it; pairs with InQueue::contend.
    if (words_.head->compare_exchange_strong(head, head_ + 1, std::memory_order_acq_rel)) {
      ticket = queued_[head_ & (places_ - 1)];
      ++head_;
      return Room::made;
    }
    if (head <= head_ || head > tail_) return Room::broken;
    head_ = head;
  }
  return Room::none;
}

InQueue::InQueue(const Words& words, std::uint32_t places)
    : words_(words), places_(places), places_shift_(static_cast<unsigned>(std::bit_width(places) - 1)) {}

/// An entry that was read counts only if this side then moves the head past it: until then the publisher may take it
/// back and overwrite it. Gives up after kMostRaces lost races; the publisher's bell makes the caller try again.
InQueue::Look InQueue::contend(Entry& entry) noexcept {
  for (int race = 0; race < kMostRaces; ++race) {
    std::uint64_t head = words_.head->load(std::memory_order_acquire);  // MESSAGE-HEAD
    if (head < position_) return Look::broken;
    position_ = head;
    if (read(head, entry) == Look::nothing) {
      if (words_.head->load(std::memory_order_acquire) == head) return Look::nothing;  // MESSAGE-HEAD
      continue;
    }
    // MESSAGE-HEAD: pairs with OutQueue::seize_oldest.
    if (words_.head->compare_exchange_strong(head, head + 1, std::memory_order_acq_rel)) {
      ++position_;
      return Look::message;
    }
  }
  return Look::nothing;
}

bool InQueue::waiting() noexcept {
  Entry entry;
  if (words_.head == nullptr) return read(position_, entry) == Look::message;
  const std::uint64_t head = words_.head->load(std::memory_order_acquire);  // MESSAGE-HEAD
  return head < position_ || read(head, entry) == Look::message;
}

}  // namespace wherry::message
