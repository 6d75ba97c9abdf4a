// SPDX-License-Identifier: Apache-2.0
#include "mailbox/early.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "arch/shared_copy.hpp"
#include "mailbox/section.hpp"

namespace wherry::mailbox {
namespace {

using layout::kMailboxEarly;
using layout::kMailboxEarlyClaimed;
using layout::kMailboxEarlyEnds;

constexpr std::uint64_t kFlags = layout::kMailboxAlign - 1;

/// Bytes of a message with its length and padding.
std::uint64_t around(std::uint64_t bytes) {
  return sizeof(std::uint64_t) + (bytes + layout::kMailboxAlign - 1) / layout::kMailboxAlign * layout::kMailboxAlign;
}

std::uint64_t length_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + at, sizeof length);
  return length;
}

/// Limits the unread chunks of a peer that connects repeatedly.
constexpr std::size_t kMostChunks = 8;

/// Whether these bytes are a sequence of whole messages.
bool is_well_formed(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t left = bytes.size() - at;
    if (left < sizeof(std::uint64_t)) return false;
    const std::uint64_t length = length_at(bytes, at);
    if (length > left - sizeof length || around(length) > left) return false;
    at += static_cast<std::size_t>(around(length));
  }
  return true;
}

layout::MailboxPage* page_of(const fabric::Connection& connection) {
  return reinterpret_cast<layout::MailboxPage*>(connection.map());
}

}  // namespace

void EarlySender::attach(std::span<std::byte> segment) noexcept {
  assert(page_ == nullptr && segment.size() >= layout::kMailboxWordsBytes + kMailboxEarly);
  page_ = reinterpret_cast<layout::MailboxPage*>(segment.data());
  area_ = segment.data() + segment.size() - kMailboxEarly;
  written_ = 0;
  if (kept_.empty()) return;
  arch::copy_into_shared(area_, kept_.data(), kept_.size());
  written_ = kept_.size();
  // MAILBOX-EARLY release: pairs with EarlyMessages::claim, which reads the bytes.
  page_->early.store(written_, std::memory_order_release);
  kept_ = {};
}

bool EarlySender::append(const Mailbox::Outgoing& message) noexcept {
  if (page_ == nullptr || message.bytes > kMailboxEarly) return false;
  const std::uint64_t need = around(message.bytes);
  if (need > kMailboxEarly - written_ || claimed()) return false;
  std::byte* to = area_ + written_;
  std::memcpy(to, &message.bytes, sizeof message.bytes);
  to += sizeof message.bytes;
  for (const iovec& piece : message.pieces) {
    if (piece.iov_len != 0) arch::copy_into_shared(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
  std::uint64_t expected = written_;
  // MAILBOX-EARLY release: pairs with EarlyMessages::claim, which reads the bytes.
  if (!page_->early.compare_exchange_strong(expected, written_ + need, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    return false;
  }
  written_ += need;
  return true;
}

bool EarlySender::claimed() const noexcept {
  // MAILBOX-EARLY acquire: pairs with EarlyMessages::claim; what the peer stored before it is visible.
  return page_ != nullptr && (page_->early.load(std::memory_order_acquire) & kMailboxEarlyClaimed) != 0;
}

void EarlySender::withdraw() {
  if (page_ == nullptr) return;
  std::vector<std::byte> kept;
  kept.reserve(static_cast<std::size_t>(written_));
  // MAILBOX-EARLY acquire, release: whichever sets the bit first, this or EarlyMessages::claim, has the bytes.
  const std::uint64_t before = page_->early.fetch_or(kMailboxEarlyClaimed, std::memory_order_acq_rel);
  if ((before & kMailboxEarlyClaimed) == 0) kept.assign(area_, area_ + written_);
  if (!kept.empty()) kept_ = std::move(kept);
  detach();
}

void EarlySender::detach() noexcept {
  page_ = nullptr;
  area_ = nullptr;
  written_ = 0;
}

void EarlySender::end() noexcept {
  // MAILBOX-EARLY release: pairs with left_behind.
  if (page_ != nullptr) page_->early.fetch_or(kMailboxEarlyEnds, std::memory_order_release);
}

int EarlyMessages::claim(fabric::Connection& connection, std::size_t bytes) noexcept {
  if (bytes == 0 || connection.map() == nullptr) return 0;
  // MAILBOX-EARLY acquire, release: pairs with EarlySender::append, whose bytes are visible, and with withdraw.
  const std::uint64_t word = page_of(connection)->early.fetch_or(kMailboxEarlyClaimed, std::memory_order_acq_rel);
  if ((word & kMailboxEarlyClaimed) != 0) return 0;
  const std::uint64_t count = word & ~kFlags;
  if (count == 0) return 0;
  if (count > std::min(bytes, kMailboxEarly) || chunks_.size() == kMostChunks) return EPROTO;
  std::byte* const area = connection.map() + connection.remote_bytes() - bytes;
  try {
    std::vector<std::byte> chunk(static_cast<std::size_t>(count));
    arch::copy_out_of_shared(chunk.data(), area, chunk.size());
    give_back_pages(area, 0, chunk.size());
    if (!is_well_formed(chunk)) return EPROTO;
    chunks_.push_back(std::move(chunk));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

std::uint64_t EarlyMessages::length() const noexcept { return length_at(chunks_.front(), at_); }

void EarlyMessages::find(Mailbox::Piece& piece) const noexcept {
  const std::uint64_t bytes = length();
  const std::size_t next = at_ + static_cast<std::size_t>(around(bytes));
  piece.message_bytes = bytes;
  piece.offset = read_;
  const std::vector<std::byte>& chunk = chunks_.front();
  piece.bytes = {{chunk.data() + at_ + sizeof bytes + read_, static_cast<std::size_t>(bytes) - read_}, {}};
  piece.more = next < chunk.size() || chunks_.size() > 1;
}

bool EarlyMessages::consume(std::size_t bytes) noexcept {
  if (bytes > length() - read_) return false;
  read_ += bytes;
  if (read_ != length()) return true;
  at_ += static_cast<std::size_t>(around(length()));
  read_ = 0;
  if (at_ != chunks_.front().size()) return true;
  at_ = 0;
  chunks_.pop_front();
  return true;
}

LeftBehind left_behind(const fabric::Connection& connection, std::size_t bytes) noexcept {
  if (bytes == 0 || connection.map() == nullptr) return {};
  // MAILBOX-EARLY acquire: pairs with EarlySender.
  const std::uint64_t word = page_of(connection)->early.load(std::memory_order_acquire);
  return {.messages = (word & kMailboxEarlyClaimed) == 0 && (word & ~kFlags) != 0,
          .in_order = (word & kMailboxEarlyEnds) != 0,
          .given_up = (word & kMailboxEarlyClaimed) != 0};
}

}  // namespace wherry::mailbox
