// SPDX-License-Identifier: Apache-2.0
// How large each peer's section is: computes the sizes from the layout and the budget, and makes the grants that bring
// them about. Knows no bells. May include: base, layout, fabric.
//
// Ledger says which grants may be made when; Division computes the sizes; Talkers finds the peers that send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/mailbox.hpp>

#include "mailbox/divide.hpp"
#include "mailbox/ledger.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/talkers.hpp"

namespace wherry::mailbox {

class SectionAllocator {
 public:
  /// @param options  checked already
  SectionAllocator(Pairs& pairs, const MailboxOptions& options);

  /// Makes room for that many pairs. Nothing else allocates. Throws std::bad_alloc.
  void reserve(std::size_t pairs);
  /// Bytes that a new pair's section has.
  [[nodiscard]] std::size_t initial_bytes() const noexcept;
  /// Bytes that any pair's section may have, under the budget of now.
  [[nodiscard]] std::size_t most_bytes() const noexcept;

  /// The pair is open now: grants it the initial section.
  void join(Pair& pair) noexcept;
  /// The pair is about to lose its connection. To be followed by allocate() or join().
  void leave(Pair& pair) noexcept;
  /// Computes all sizes, and makes the grants that are possible now.
  void allocate() noexcept;
  /// The peer has adopted its outstanding grant.
  void on_agreement(Pair& pair) noexcept;
  /// Bytes that the peer sent were consumed.
  void on_consumed(Pair& pair, std::size_t bytes) noexcept {
    if (!pair.has_sent) on_first_message(pair);
    if (follows_traffic() && talkers_.on_piece(pair.number, bytes) && talkers_.end_period()) allocate();
  }

  // As the functions of Mailbox.
  void set_layout(Layout layout) noexcept;
  void set_budget(std::size_t bytes) noexcept;
  void set_neighbours(std::span<const Mailbox::Neighbour> neighbours);
  void widen(Pair& pair, bool wide) noexcept;

 private:
  /// With more peers than this, sections of equal size would all be small: they go to those that talk.
  static constexpr std::size_t kMostEqual = 100;

  [[nodiscard]] bool follows_traffic() const noexcept {
    switch (layout_) {
      case Layout::equal:
        return open_ > kMostEqual;
      case Layout::topology:
        return !has_neighbours_;
      case Layout::adaptive:
        break;
    }
    return true;
  }
  [[nodiscard]] std::uint32_t weight_of(const Pair& pair) const noexcept;
  /// Whether the pair keeps its initial section.
  [[nodiscard]] bool is_initial(const Pair& pair) const noexcept { return !pair.has_sent && weight_of(pair) == 0; }
  [[nodiscard]] Division division() const noexcept;
  void on_first_message(Pair& pair) noexcept;
  void issue_grants() noexcept;
  void set_lane(Pair& pair, bool has) noexcept;

  Pairs& pairs_;
  const Lines header_;
  const Lines initial_;  ///< of a pair that has not sent yet
  const Lines lane_;
  Lines budget_;
  Layout layout_;
  Ledger ledger_;
  Talkers talkers_;
  std::size_t open_ = 0;         ///< pairs
  std::uint32_t lanes_ = 0;      ///< pairs that have one
  bool has_neighbours_ = false;  ///< any declared
};

}  // namespace wherry::mailbox
