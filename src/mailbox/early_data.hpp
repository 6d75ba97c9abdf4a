// SPDX-License-Identifier: Apache-2.0
// The early data of all pairs: what is sent to them before they have granted anything, and what came so and was not
// read yet. May include: base, arch, layout, fabric.
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
  /// @param overflow  as MailboxOptions::overflow. Without one there is no early data either: what a sender may have on
  ///                  its way is bounded by its section then.
  EarlyData(Pairs& pairs, std::size_t overflow) : pairs_(pairs), overflow_(overflow) {}

  /// Makes room for that many pairs. Throws std::bad_alloc.
  void reserve(std::size_t pairs) { unread_.reserve(pairs); }
  /// All pairs are met on this fabric.
  void set_fabric(const fabric::Fabric& fabric) noexcept;
  /// Bytes for early data at the end of each own segment. 0: there is none.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The pair's early data go into this segment from now on, unless it is empty.
  void attach(Pair& pair, std::span<std::byte> segment) noexcept;
  /// The message becomes early data. False: not any more, there is no room, or no segment.
  [[nodiscard]] bool append(Pair& pair, Mailbox::Outgoing& message) noexcept;

  /// Takes the peer's early data, which come before what is in the section. Returns 0 or an errno value.
  [[nodiscard]] int claim(Pair& pair, fabric::Connection& connection) noexcept;
  /// Whether any was claimed and not read.
  [[nodiscard]] bool has_unread() const noexcept { return !unread_.empty(); }
  /// The next piece, of the pair whose early data came first. Not unless has_unread().
  void find(Mailbox::Piece& piece) const noexcept;
  /// As Incoming::consume. The loss of a pair is reported after its last early message.
  bool consume(Pair& pair, std::size_t bytes) noexcept;
  void forget(Pair& pair) noexcept { std::erase(unread_, &pair); }

 private:
  Pairs& pairs_;
  const std::size_t overflow_;
  std::size_t bytes_ = 0;
  std::vector<Pair*> unread_;  ///< first come, first served
};

/// The error of a pair whose peer is gone. A connector that closes before it was answered notes in its page that it did
/// so in order.
[[nodiscard]] int error_of_gone(const Pair& pair) noexcept;

}  // namespace wherry::mailbox
