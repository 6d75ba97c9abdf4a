// SPDX-License-Identifier: Apache-2.0
// Early data: messages that one side of a pair sends before the peer has granted it a section
// (layout/mailbox_page.hpp). The sender leaves them in its own segment. The receiver claims them when it first maps
// that segment, even if the sender has gone by then.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <wherry/mailbox.hpp>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"

namespace wherry::mailbox {

/// This side's early data: in the segment of its attempt or connection, or in this object while it has neither.
class EarlySender {
 public:
  /// Puts early data at the end of this segment from now on, withdrawn messages first. The segment begins with a
  /// MailboxPage, has kMailboxEarly bytes for early data, and must last until detach() or withdraw().
  void attach(std::span<std::byte> segment) noexcept;
  [[nodiscard]] bool attached() const noexcept { return page_ != nullptr; }
  /// Appends the whole message or nothing. False: there is no segment or no room, or the peer has claimed the early
  /// data.
  [[nodiscard]] bool append(const Mailbox::Outgoing& message) noexcept;
  /// Whether the peer has claimed the early data.
  [[nodiscard]] bool claimed() const noexcept;
  /// Whether any message is not claimed yet.
  [[nodiscard]] bool any() const noexcept { return !kept_.empty() || (written_ != 0 && !claimed()); }
  /// Gives up the segment, and keeps unclaimed messages for the next one. Throws std::bad_alloc; then nothing has
  /// changed.
  void withdraw();
  /// Gives up the segment, with the messages that the peer does not claim.
  void detach() noexcept;
  /// Marks in the segment, before it is given up, that this side closed in order.
  void end() noexcept;

 private:
  layout::MailboxPage* page_ = nullptr;
  std::byte* area_ = nullptr;
  std::uint64_t written_ =
      0;  ///< the count that `early` should have; the word itself is not trusted, as the peer may write it
  std::vector<std::byte> kept_;
};

/// The peer's early data, copied into this side's memory.
class EarlyMessages {
 public:
  /// Claims the peer's early data on this connection, and appends them to those already here. Pointers from find() stay
  /// valid. Returns 0 or an errno value: EPROTO (malformed, or more than eight claims unread), ENOMEM.
  /// @param bytes  for early data, as in the peer's greeting
  [[nodiscard]] int claim(fabric::Connection& connection, std::size_t bytes) noexcept;
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty(); }
  /// Finds the rest of the first message. Not if empty().
  void find(Mailbox::Piece& piece) const noexcept;
  /// Consumes `bytes` of the first message. False: it is shorter.
  bool consume(std::size_t bytes) noexcept;

 private:
  [[nodiscard]] std::uint64_t length() const noexcept;

  std::deque<std::vector<std::byte>> chunks_;  ///< whole messages; a chunk for each claim
  std::size_t at_ = 0;                         ///< offset of the first message in the first chunk
  std::size_t read_ = 0;                       ///< bytes of the first message that were read
};

/// What a connecting side left in its segment before it ended.
struct LeftBehind {
  bool messages = false;  ///< early data that are not claimed
  bool in_order = false;  ///< it closed in order
  bool given_up = false;  ///< its early data were claimed, or withdrawn to be sent on another connection
};
[[nodiscard]] LeftBehind left_behind(const fabric::Connection& connection, std::size_t bytes) noexcept;

}  // namespace wherry::mailbox
