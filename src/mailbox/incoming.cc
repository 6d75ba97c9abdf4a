// SPDX-License-Identifier: Apache-2.0
#include "mailbox/incoming.hpp"

#include <cassert>

namespace wherry::mailbox {

using fabric::Bell;

Incoming::Incoming(fabric::Connection& connection, std::size_t overflow, std::size_t early)
    : words_(connection, 0),
      own_(own_words(connection)),
      section_(connection.segment().data() + layout::kMailboxWordsBytes),
      reader_(section_),
      section_bytes_(connection.segment().size() - layout::kMailboxWordsBytes - early),
      most_overflow_(overflow),
      most_lines_(static_cast<std::uint32_t>(section_bytes_ / layout::kMailboxLine)) {}

void Incoming::look() noexcept {
  // MAILBOX-TAIL acquire: pairs with the release in PeersWords::store. The bytes before this position are visible, and
  // so is an ack stored before it.
  const std::uint64_t tail = own_.tail.load(std::memory_order_acquire);
  // MAILBOX-OVERFLOW acquire: pairs with the release in PeersWords::store_overflow; an ack stored before it is visible.
  const std::uint64_t overflow = own_.overflow.load(std::memory_order_acquire);
  const bool moved = overflow != overflow_;
  if (moved && reader_.overflows()) [[unlikely]]
    reader_.leave_overflow();
  if (waits_for_ack_) take_ack();
  if (moved) [[unlikely]]
    follow(overflow);
  // The writer stores it before the tail and overwrites it only after the message was read. It therefore belongs to the
  // message at its position, or is stale. It lies in the line that the peer writes with every message, so it is copied
  // once for each look, not loaded for each message.
  inlined_word_ = own_.inlined.load(std::memory_order_relaxed);
  reader_.see(tail);
}

/// The peer changes its ack only while the section is drained. So an ack that is read after a tail is not newer than
/// the unread bytes before that tail.
void Incoming::take_ack() noexcept {
  // MAILBOX-ACK acquire: pairs with the release in PeersWords::store.
  const std::uint64_t ack = own_.ack.load(std::memory_order_acquire);
  if ((ack & ~layout::kMailboxKeptPages) != outstanding_.epoch) return;
  if (!reader_.drained()) return reader_.declare_broken();
  // With an overflow, a peer that maps this memory has returned the pages itself: it may already be writing there.
  const bool kept = most_overflow_ == 0 || (ack & layout::kMailboxKeptPages) != 0;
  if (kept && outstanding_.bytes() < reader_.capacity()) {
    give_back_pages(section_, outstanding_.bytes(), reader_.capacity());
  }
  reader_.resize(outstanding_.bytes());
  overflow_ = 0;  // stored before the ack
  waits_for_ack_ = false;
  agreed_ = true;
}

/// The peer has entered or left the overflow.
void Incoming::follow(std::uint64_t overflow) noexcept {
  overflow_ = overflow;
  if (overflow == 0) return;
  reader_.overflow(overflow - 1, layout::mailbox_overflow(reader_.capacity(), most_overflow_, section_bytes_));
}

void Incoming::grant(std::uint32_t lines) noexcept {
  assert(!waits_for_ack_ && lines != 0 && lines <= most_lines_);
  return_credit();
  outstanding_ = {.epoch = outstanding_.epoch + 1, .lines = lines};
  if (outstanding_.epoch == 0) outstanding_.epoch = 1;
  waits_for_ack_ = true;
  words_.store(WHERRY_MAILBOX_WORD(grant), outstanding_.word(), Bell::data);
}

void Incoming::return_credit() noexcept {
  if (reader_.owed() != 0) words_.store(WHERRY_MAILBOX_WORD(head), reader_.return_credit(), Bell::space);
}

}  // namespace wherry::mailbox
