// SPDX-License-Identifier: Apache-2.0
// Early data: what is sent to a pair before the peer has granted anything, and what came so.
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "mailbox/greeting.hpp"
#include "mailbox/impl.hpp"

namespace wherry {

/// Only a mailbox that has an overflow has room for early data, too: otherwise what a sender may have on its way is
/// bounded by its section.
std::size_t Mailbox::Impl::early_bytes() const noexcept {
  return overflow_ != 0 && fabric_->keeps_segments() ? layout::kMailboxEarly : 0;
}

void Mailbox::Impl::attach_early(Pair& pair, std::span<std::byte> segment) noexcept {
  if (!pair.early.attached() && !segment.empty() && early_bytes() != 0) pair.early.attach(segment);
}

/// Where the peer finds it by itself, though it has not granted anything. False: it has, or will soon, or there is no
/// room.
bool Mailbox::Impl::send_early(Pair& pair, Outgoing& message) noexcept {
  if (!pair.sends_early() || message.taken != 0) return false;
  if (pair.is_open() && (pair.gone || pair.in->finished() != 0)) return false;
  if (pair.attempt != nullptr) attach_early(pair, pair.attempt->segment());
  if (pair.early.append(message)) {
    message.taken = message.bytes;
    return true;
  }
  if (pair.early.claimed()) finish_attempt(pair);
  return false;
}

/// Takes the early data of the peer, which come before what is in the section. Returns 0 or an errno value.
int Mailbox::Impl::claim_early(Pair& pair, fabric::Connection& connection) noexcept {
  const std::size_t bytes = mailbox::greeting_in(connection.peer_greeting()).early;
  if (bytes == 0) return 0;
  const bool had = pair.early_received != nullptr;
  if (!had) pair.early_received.reset(new (std::nothrow) mailbox::EarlyMessages);
  if (pair.early_received == nullptr) return ENOMEM;
  const int error = pair.early_received->claim(connection, bytes);
  if (pair.early_received->empty()) {
    pair.early_received.reset();
  } else if (!had) {
    early_.push_back(&pair);
  }
  return error;
}

/// A connector that closes before it was answered cannot say in the usual way that it did so in order.
int Mailbox::Impl::error_of_gone(const Pair& pair) noexcept {
  const std::size_t early = mailbox::greeting_in(pair.connection->peer_greeting()).early;
  return mailbox::left_behind(*pair.connection, early).in_order ? 0 : ECONNRESET;
}

void Mailbox::Impl::find_early(Piece& piece) noexcept {
  const Pair& pair = *early_.front();
  pair.early_received->find(piece);
  piece.from = pair.number;
  vain_looks_ = 0;
}

void Mailbox::Impl::consume_early(Pair& pair, std::size_t bytes) noexcept {
  if (!pair.early_received->consume(bytes)) return;
  if (pair.is_open()) count(pair, bytes);
  if (!pair.early_received->empty()) return;
  pair.early_received.reset();
  std::erase(early_, &pair);
  if (pair.state == State::lost) losses_.push_back({pair.number, pair.error});
}

}  // namespace wherry
