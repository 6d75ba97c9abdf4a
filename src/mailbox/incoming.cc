// SPDX-License-Identifier: Apache-2.0
#include "mailbox/incoming.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>

namespace wherry::mailbox {

using fabric::Bell;

namespace {

constexpr std::size_t kPage = 4096;

std::byte* next_page(std::byte* address) { return address + (0 - reinterpret_cast<std::uintptr_t>(address)) % kPage; }

}  // namespace

Incoming::Incoming(fabric::Connection& connection)
    : words_(connection),
      own_(own_words(connection)),
      section_(connection.segment().data() + layout::kMailboxWordsBytes),
      reader_(section_),
      most_lines_(static_cast<std::uint32_t>((connection.segment().size() - layout::kMailboxWordsBytes) /
                                             layout::kMailboxLine)) {}

void Incoming::look() noexcept {
  // MAILBOX-TAIL acquire: pairs with the release in PeersWords::store; the bytes before this position, and the ack that
  // was stored before it, are visible.
  const std::uint64_t tail = own_.tail.load(std::memory_order_acquire);
  if (waits_for_ack_) take_ack();
  reader_.see(tail);
}

/// The peer changes its ack only while the section is drained. So an ack that is read after a tail cannot be newer than
/// the bytes before that tail that have not been read yet.
void Incoming::take_ack() noexcept {
  // MAILBOX-ACK acquire: pairs with the release in PeersWords::store.
  if (own_.ack.load(std::memory_order_acquire) != outstanding_.epoch) return;
  if (!reader_.drained()) return reader_.declare_broken();
  if (outstanding_.bytes() < reader_.capacity()) give_back_pages(outstanding_.bytes(), reader_.capacity());
  reader_.resize(outstanding_.bytes());
  waits_for_ack_ = false;
  agreed_ = true;
}

/// The peer stores nothing beyond the new size. Only where other processes map the memory does the kernel take it.
void Incoming::give_back_pages(std::size_t kept, std::size_t had) noexcept {
  std::byte* const from = next_page(section_ + kept);
  std::byte* const to = next_page(section_ + had);
  if (from < to) ::madvise(from, static_cast<std::size_t>(to - from), MADV_REMOVE);
}

void Incoming::grant(std::uint32_t lines) noexcept {
  assert(!waits_for_ack_ && lines != 0 && lines <= most_lines_);
  return_credit();
  outstanding_ = {.epoch = outstanding_.epoch + 1, .lines = lines};
  if (outstanding_.epoch == 0) outstanding_.epoch = 1;
  waits_for_ack_ = true;
  words_.store(WHERRY_MAILBOX_WORD(grant), outstanding_.word(), Bell::data);
}

/// True: a message is under way, and there is a byte of it, or it has none.
bool Incoming::parse() noexcept {
  if (!in_message_ && !begin()) return false;
  if (rest_ == 0 || reader_.fill() != 0) return true;
  look();
  return reader_.fill() != 0;
}

/// Reads the length of a message.
bool Incoming::begin() noexcept {
  const std::size_t padding = (0 - reader_.head()) % layout::kMailboxAlign;
  const std::size_t need = padding + sizeof length_;
  if (reader_.fill() < need) {
    look();
    if (reader_.fill() < need) return false;
  }
  if (!read_length(padding)) {
    reader_.declare_broken();
    return false;
  }
  reader_.consume(need);
  rest_ = length_;
  in_message_ = true;
  return true;
}

/// Beside the tail or in the section. False: it is nonsense.
bool Incoming::read_length(std::size_t padding) noexcept {
  // Stored before the tail of that message, and again only once that was read: it is this message's or of another
  // place.
  const std::uint64_t at = layout::mailbox_inlined(reader_.head() + padding, 0);
  length_ = own_.inlined.load(std::memory_order_relaxed) - at;
  inlined_ = length_ <= layout::kMailboxInlined;
  if (inlined_) return reader_.fill() >= padding + sizeof length_ + length_;
  if (length_ == layout::kMailboxRestart) reader_.restart();
  std::memcpy(&length_, reader_.peek(sizeof length_, padding).first.data(), sizeof length_);
  return length_ <= layout::kMailboxLongest;
}

bool Incoming::consume(std::size_t bytes) noexcept {
  if (!in_message_ || bytes > std::min<std::uint64_t>(rest_, reader_.fill())) return false;
  reader_.consume(bytes);
  rest_ -= bytes;
  if (rest_ == 0) in_message_ = false;
  if (waits_for_ack_ || reader_.capacity() <= kTiny || reader_.owed() >= reader_.capacity() / 4) return_credit();
  return true;
}

void Incoming::return_credit() noexcept {
  if (reader_.owed() != 0) words_.store(WHERRY_MAILBOX_WORD(head), reader_.return_credit(), Bell::space);
}

}  // namespace wherry::mailbox
