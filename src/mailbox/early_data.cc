// SPDX-License-Identifier: Apache-2.0
#include "mailbox/early_data.hpp"

#include <cerrno>
#include <memory>
#include <new>

#include "mailbox/early.hpp"
#include "mailbox/greeting.hpp"

namespace wherry::mailbox {

void EarlyData::set_fabric(const fabric::Fabric& fabric) noexcept {
  bytes_ = overflow_ != 0 && fabric.keeps_segments() ? layout::kMailboxEarly : 0;
}

void EarlyData::attach(Pair& pair, std::span<std::byte> segment) noexcept {
  if (!pair.early.attached() && !segment.empty() && bytes_ != 0) pair.early.attach(segment);
}

bool EarlyData::append(Pair& pair, Mailbox::Outgoing& message) noexcept {
  if (pair.attempt != nullptr) attach(pair, pair.attempt->segment());
  if (!pair.early.append(message)) return false;
  message.taken = message.bytes;
  return true;
}

int EarlyData::claim(Pair& pair, fabric::Connection& connection) noexcept {
  const std::size_t bytes = greeting_in(connection.peer_greeting()).early;
  if (bytes == 0) return 0;
  const bool had = pair.early_received != nullptr;
  if (!had) pair.early_received.reset(new (std::nothrow) EarlyMessages);
  if (pair.early_received == nullptr) return ENOMEM;
  const int error = pair.early_received->claim(connection, bytes);
  if (pair.early_received->empty()) {
    pair.early_received.reset();
  } else if (!had) {
    unread_.push_back(&pair);
  }
  return error;
}

void EarlyData::find(Mailbox::Piece& piece) const noexcept {
  const Pair& pair = *unread_.front();
  pair.early_received->find(piece);
  piece.from = pair.number;
}

bool EarlyData::consume(Pair& pair, std::size_t bytes) noexcept {
  if (!pair.early_received->consume(bytes)) return false;
  if (!pair.early_received->empty()) return true;
  pair.early_received.reset();
  std::erase(unread_, &pair);
  if (pair.state == State::lost) pairs_.report_loss(pair);
  return true;
}

int error_of_gone(const Pair& pair) noexcept {
  const std::size_t early = greeting_in(pair.connection->peer_greeting()).early;
  return left_behind(*pair.connection, early).in_order ? 0 : ECONNRESET;
}

}  // namespace wherry::mailbox
