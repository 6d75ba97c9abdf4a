// SPDX-License-Identifier: Apache-2.0
#include "mailbox/incoming.hpp"

#include <sys/mman.h>

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

bool Incoming::read_length_in_section(std::size_t padding) noexcept {
  if (length_ == layout::kMailboxRestart) reader_.restart();
  std::memcpy(&length_, reader_.peek(sizeof length_, padding).first.data(), sizeof length_);
  return length_ <= layout::kMailboxLongest;
}

void Incoming::return_credit() noexcept {
  if (reader_.owed() != 0) words_.store(WHERRY_MAILBOX_WORD(head), reader_.return_credit(), Bell::space);
}

}  // namespace wherry::mailbox
