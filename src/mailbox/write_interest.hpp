// SPDX-License-Identifier: Apache-2.0
// Sends that found no room: which pairs wait for it, and which have it and are to be reported as writable. May include:
// base, layout, fabric.
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
  /// Makes room for that many pairs. Nothing else allocates. Throws std::bad_alloc.
  void reserve(std::size_t pairs);

  /// The pair waits for this room from now on.
  void add(Pair& pair, WantedRoom wanted) noexcept;
  void remove(Pair& pair) noexcept;
  /// A waiting pair that has room now, or whose peer has ended, becomes writable. True: this one did.
  bool check(Pair& pair) noexcept;
  /// The same for all. True: any did.
  bool check_all() noexcept;
  /// Arms Bell::space of all pairs that wait.
  void arm() noexcept;

  /// A blocking send waits for this pair, so that check() leaves it alone. Null: none does.
  void set_blocked(Pair* pair) noexcept { blocked_ = pair; }
  /// The pair is lost, which its sender learns from the next try_send: writable, if it waits.
  void on_loss(Pair& pair) noexcept;
  void forget(Mailbox::Peer peer) noexcept;

  [[nodiscard]] bool has_writable() const noexcept { return !writable_.empty(); }
  /// As Mailbox::writable.
  std::size_t take_writable(std::span<Mailbox::Peer> into) noexcept;
  /// A wait ends, because of all that is writable now.
  void mark_reported() noexcept { reported_ = writable_.size(); }
  /// Room is reported by one wait only.
  void drop_reported() noexcept;

 private:
  void set_writable(Pair& pair) noexcept;

  std::vector<Pair*> waiting_;
  std::vector<Mailbox::Peer> writable_;
  std::size_t reported_ = 0;  ///< the first of `writable_`
  Pair* blocked_ = nullptr;
};

}  // namespace wherry::mailbox
