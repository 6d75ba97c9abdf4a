// SPDX-License-Identifier: Apache-2.0
// Tracks sends that found no room: which pairs wait for it, and which are to be reported as writable.
//
// May include: base, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <wherry/mailbox.hpp>

#include "mailbox/pair.hpp"

namespace wherry::mailbox {

class WriteInterest {
 public:
  /// Reserves memory for that many pairs. Nothing else allocates. Throws std::bad_alloc.
  void reserve(std::size_t pairs);

  /// Makes the pair wait for this room.
  void add(Pair& pair, WantedRoom wanted) noexcept;
  void remove(Pair& pair) noexcept;
  /// Makes a waiting pair writable if it has room now or its peer has ended. True: it did.
  bool check(Pair& pair) noexcept;
  /// Checks all waiting pairs. True: at least one became writable.
  bool check_all() noexcept;
  /// Arms Bell::space of all waiting pairs.
  void arm() noexcept;

  /// Sets the pair for which a blocking send waits: check() skips it. Null: none.
  void set_blocked(Pair* pair) noexcept { blocked_ = pair; }
  /// Makes a lost pair writable if it waits, so that the next try_send reports the loss.
  void on_loss(Pair& pair) noexcept;
  void forget(Mailbox::Peer peer) noexcept;

  [[nodiscard]] bool has_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] bool has_writable() const noexcept { return !writable_.empty(); }
  /// As Mailbox::writable.
  std::size_t take_writable(std::span<Mailbox::Peer> into) noexcept;
  /// Marks all currently writable pairs as reported by the wait that ends.
  void mark_reported() noexcept { reported_ = writable_.size(); }
  /// Drops the pairs that an earlier wait has reported: each is reported once.
  void drop_reported() noexcept;

 private:
  void set_writable(Pair& pair) noexcept;

  std::vector<Pair*> waiting_;
  std::vector<Mailbox::Peer> writable_;
  std::size_t reported_ = 0;  ///< number of reported pairs, at the start of `writable_`
  Pair* blocked_ = nullptr;
};

}  // namespace wherry::mailbox
