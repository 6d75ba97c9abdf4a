// SPDX-License-Identifier: Apache-2.0
// Early data: messages that a side of a pair sends before the peer has granted it a section, as layout/mailbox_page.hpp
// describes them. The sender leaves them in its own segment; the receiver claims them when it first maps that segment,
// whatever the sender does then. May include: base, arch, layout, fabric.
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

/// This side's early data: in the segment of its attempt or connection, or kept here while it has neither.
class EarlySender {
 public:
  /// From now on they lie at the end of this segment, which begins with a MailboxPage. Those that were withdrawn go
  /// there first. The segment must have kMailboxEarly bytes for them, and last until detach() or withdraw().
  void attach(std::span<std::byte> segment) noexcept;
  [[nodiscard]] bool attached() const noexcept { return page_ != nullptr; }
  /// The whole message or nothing. False: there is no segment, no room, or the peer has claimed what was there.
  [[nodiscard]] bool append(const Mailbox::Outgoing& message) noexcept;
  /// Whether the peer has claimed them.
  [[nodiscard]] bool claimed() const noexcept;
  /// Whether there are messages that the peer has not claimed.
  [[nodiscard]] bool any() const noexcept { return !kept_.empty() || (written_ != 0 && !claimed()); }
  /// The segment is given up. Messages that the peer has not claimed are sent with the next segment. Throws
  /// std::bad_alloc: nothing has changed.
  void withdraw();
  /// The segment is given up, and with it what the peer does not claim.
  void detach() noexcept;
  /// Nothing will follow, and the segment is about to be given up.
  void end() noexcept;

 private:
  layout::MailboxPage* page_ = nullptr;
  std::byte* area_ = nullptr;
  std::uint64_t written_ = 0;  ///< what the word should count: the peer may write it
  std::vector<std::byte> kept_;
};

/// The peer's early data, in this side's memory.
class EarlyMessages {
 public:
  /// Claims those of the peer on this connection, behind what is here, which stays in place. Returns 0, or an errno
  /// value: EPROTO, they are malformed, or too many; ENOMEM. `bytes` as the peer's greeting says.
  [[nodiscard]] int claim(fabric::Connection& connection, std::size_t bytes) noexcept;
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty(); }
  /// The rest of the first message. Not if empty().
  void find(Mailbox::Piece& piece) const noexcept;
  /// `bytes` of it have been read. False: it has not so many.
  bool consume(std::size_t bytes) noexcept;

 private:
  [[nodiscard]] std::uint64_t length() const noexcept;

  std::deque<std::vector<std::byte>> chunks_;  ///< of whole messages, one for each claim
  std::size_t at_ = 0;                         ///< where the first message begins in the first chunk
  std::size_t read_ = 0;                       ///< bytes of it
};

/// What a connector that has ended left in its segment.
struct LeftBehind {
  bool messages = false;  ///< early data that were not claimed
  bool in_order = false;  ///< it closed in order
  bool given_up = false;  ///< it took them back, to send them by another connection
};
[[nodiscard]] LeftBehind left_behind(const fabric::Connection& connection, std::size_t bytes) noexcept;

}  // namespace wherry::mailbox
