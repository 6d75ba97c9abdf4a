// SPDX-License-Identifier: Apache-2.0
// The early data of all pairs: messages sent before the peer has granted a section, and received ones that are not read
// yet.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <wherry/mailbox.hpp>

#include "fabric/fabric.hpp"
#include "mailbox/pairs.hpp"

namespace wherry::mailbox {

class EarlyData {
 public:
  /// @param overflow  as MailboxOptions::overflow. 0 disables early data, too: then the section alone bounds what a
  /// sender may have in flight.
  EarlyData(Pairs& pairs, std::size_t overflow) : pairs_(pairs), overflow_(overflow) {}

  /// Reserves memory for that many pairs. Throws std::bad_alloc.
  void reserve(std::size_t pairs) { unread_.reserve(pairs); }
  /// Sets the fabric of all pairs. Only one that keeps segments has early data.
  void set_fabric(const fabric::Fabric& fabric) noexcept;
  /// Bytes for early data at the end of each of this side's segments. 0: there are none.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Puts the pair's early data into this segment from now on. Does nothing if the segment is empty or another is
  /// attached.
  void attach(Pair& pair, std::span<std::byte> segment) noexcept;
  /// Sends the message as early data. False: the peer has claimed them, there is no room, or no segment.
  [[nodiscard]] bool append(Pair& pair, Mailbox::Outgoing& message) noexcept;

  /// Claims the peer's early data, which are read before the section. Returns 0 or an errno value.
  [[nodiscard]] int claim(Pair& pair, fabric::Connection& connection) noexcept;
  /// Whether claimed early data are not read yet.
  [[nodiscard]] bool has_unread() const noexcept { return !unread_.empty(); }
  /// Finds the next piece, of the pair whose early data were claimed first. Only if has_unread().
  void find(Mailbox::Piece& piece) const noexcept;
  /// As Incoming::consume. Reports the loss of a lost pair after its last early message.
  bool consume(Pair& pair, std::size_t bytes) noexcept;
  void forget(Pair& pair) noexcept { std::erase(unread_, &pair); }

 private:
  Pairs& pairs_;
  const std::size_t overflow_;
  std::size_t bytes_ = 0;
  std::vector<Pair*> unread_;  ///< in the order of their claims
};

/// The error of a pair whose peer is gone. 0: a connecting peer closed in order before it was answered, as its page
/// says.
[[nodiscard]] int error_of_gone(const Pair& pair) noexcept;

}  // namespace wherry::mailbox
