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
      most_lines_(static_cast<std::uint32_t>((section_bytes_ - overflow) / layout::kMailboxLine)) {}

void Incoming::look() noexcept {
  // MAILBOX-TAIL acquire: pairs with the release in PeersWords::store. The bytes before this position are visible, and
  // so is an ack stored before it.
  const std::uint64_t tail = own_.tail.load(std::memory_order_acquire);
  // MAILBOX-OVERFLOW acquire: pairs with the release in PeersWords::store_overflow; an ack stored before it is visible.
  std::uint64_t overflow = own_.overflow.load(std::memory_order_acquire);
  if (waits_for_ack_) take_ack(overflow);
  if (overflow != overflow_) [[unlikely]]
    follow(overflow);
  // The writer stores it before the tail and overwrites it only after the message was read. It therefore belongs to the
  // message at its position, or is stale. It lies in the line that the peer writes with every message, so it is copied
  // once for each look, not loaded for each message.
  inlined_word_ = own_.inlined.load(std::memory_order_relaxed);
  reader_.see(tail);
}

/// The peer changes its ack only while the section is drained. So an ack that is read after a tail is not newer than
/// the unread bytes of the section before that tail.
/// @param overflow  the peer's `overflow` word, which is read again after the ack
void Incoming::take_ack(std::uint64_t& overflow) noexcept {
  // MAILBOX-ACK acquire: pairs with the release in PeersWords::store.
  const std::uint64_t ack = own_.ack.load(std::memory_order_acquire);
  const std::uint64_t flags = ack & (layout::kMailboxKeptPages | layout::kMailboxInOverflow);
  if ((ack ^ flags) != outstanding_.epoch) return;
  // MAILBOX-OVERFLOW acquire: pairs with the release in PeersWords::store_overflow, before the ack or later.
  overflow = own_.overflow.load(std::memory_order_acquire);
  // Whether the peer was in the overflow when it stored the ack. If not, it had left the overflow that is known here.
  const bool in_overflow = (flags & layout::kMailboxInOverflow) != 0;
  if (!in_overflow && reader_.overflows()) follow(0);
  // With an overflow, a peer that maps this memory has returned the pages itself: it may already be writing there.
  const bool kept = most_overflow_ == 0 || (flags & layout::kMailboxKeptPages) != 0;
  const std::size_t old = reader_.capacity();
  reader_.resize(outstanding_.bytes(), in_overflow);
  if (reader_.broken()) return;
  if (kept && outstanding_.bytes() < old) give_back_pages(section_, outstanding_.bytes(), old);
  waits_for_ack_ = false;
  agreed_ = true;
}

/// The peer has entered or left the overflow, or has left it and entered it again.
void Incoming::follow(std::uint64_t overflow) noexcept {
  if (reader_.overflows()) reader_.leave_overflow();
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
