// SPDX-License-Identifier: Apache-2.0
// The pairs of a mailbox by number, and the losses that the user has not fetched yet.
//
// May include: base, layout, fabric.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <wherry/address.hpp>
#include <wherry/mailbox.hpp>

#include "mailbox/pair.hpp"

namespace wherry::mailbox {

class Pairs {
 public:
  using Peer = Mailbox::Peer;

  /// Null: there is no such pair.
  [[nodiscard]] Pair* find(Peer peer) const noexcept { return peer < pairs_.size() ? pairs_[peer].get() : nullptr; }
  /// Null: there is no such pair, or it is not open.
  [[nodiscard]] Pair* find_open(Peer peer) const noexcept {
    Pair* pair = find(peer);
    return pair != nullptr && pair->is_open() ? pair : nullptr;
  }
  /// The pair whose peer listens at `address`, unless that is lost or gone. Null: there is none.
  [[nodiscard]] Pair* find_at(const Address& address) const noexcept;
  /// All pairs by number; null where a number is free.
  [[nodiscard]] auto begin() const noexcept { return pairs_.begin(); }
  [[nodiscard]] auto end() const noexcept { return pairs_.end(); }
  /// One more than the greatest number in use.
  [[nodiscard]] std::size_t numbers() const noexcept { return pairs_.size(); }
  template <class Visit>
  void for_each_open(Visit&& visit) const {
    for (const auto& pair : pairs_) {
      if (pair != nullptr && pair->is_open()) visit(*pair);
    }
  }
  /// Number of pairs that are not lost.
  [[nodiscard]] std::size_t living() const noexcept { return living_; }

  /// Reserves memory for another pair and its loss. Returns an upper bound of numbers() after add(). Throws
  /// std::bad_alloc.
  std::size_t reserve_another();
  /// A new pair with a free number. Throws std::bad_alloc.
  Pair& add();
  /// Marks the pair as lost. Reports the loss at once, unless early data of the pair are still to be read.
  void end(Pair& pair, int error) noexcept;
  void report_loss(const Pair& pair) noexcept { losses_.push_back({pair.number, pair.error}); }
  /// Frees the number of a lost pair. An unfetched loss of it is dropped.
  void remove(Peer peer) noexcept;

  [[nodiscard]] bool has_losses() const noexcept { return !losses_.empty(); }
  /// As Mailbox::losses.
  std::size_t take_losses(std::span<Mailbox::Loss> into) noexcept;

 private:
  [[nodiscard]] std::size_t free_number() const noexcept;

  std::vector<std::unique_ptr<Pair>> pairs_;
  std::size_t living_ = 0;
  std::vector<Mailbox::Loss> losses_;  ///< has room for every pair
};

}  // namespace wherry::mailbox
