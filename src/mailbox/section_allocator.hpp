// SPDX-License-Identifier: Apache-2.0
// Decides how large each peer's section is: computes the sizes from the layout and the budget, and makes the grants
// that lead to them. Rings no bells itself.
//
// May include: base, layout, fabric.
//
// Ledger decides which grants may be made when, Division computes the sizes, TopSenders finds the peers that send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/mailbox.hpp>

#include "mailbox/divide.hpp"
#include "mailbox/ledger.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/top_senders.hpp"

namespace wherry::mailbox {

class SectionAllocator {
 public:
  /// @param options  already checked
  SectionAllocator(Pairs& pairs, const MailboxOptions& options);

  /// Reserves memory for that many pairs. Nothing else allocates. Throws std::bad_alloc.
  void reserve(std::size_t pairs);
  /// Size of a new pair's section, in bytes.
  [[nodiscard]] std::size_t initial_bytes() const noexcept;
  /// Largest size of a pair's section under the current budget, in bytes.
  [[nodiscard]] std::size_t most_bytes() const noexcept;

  /// Adds a pair that is open now, and grants it the initial section.
  void join(Pair& pair) noexcept;
  /// Removes a pair that is about to lose its connection. Call allocate() or join() afterwards.
  void leave(Pair& pair) noexcept;
  /// Computes all sizes, and makes the grants that are possible now.
  void allocate() noexcept;
  /// The peer has agreed to its outstanding grant.
  void on_agreement(Pair& pair) noexcept;
  /// `bytes` from the peer were consumed.
  void on_consumed(Pair& pair, std::size_t bytes) noexcept {
    if (!pair.has_sent) on_first_message(pair);
    if (follows_traffic() && top_senders_.on_piece(pair.number, bytes) && top_senders_.end_period()) allocate();
  }

  // As the functions of Mailbox.
  void set_layout(Layout layout) noexcept;
  void set_budget(std::size_t bytes) noexcept;
  void set_neighbours(std::span<const Mailbox::Neighbour> neighbours);
  void widen(Pair& pair, bool wide) noexcept;

 private:
  /// With more peers than this, equal sections would all be small, so the budget goes to the peers that send.
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
  const Lines initial_;  ///< initial section, of a pair that has not sent yet
  const Lines lane_;
  Lines budget_;
  Layout layout_;
  Ledger ledger_;
  TopSenders top_senders_;
  std::size_t open_ = 0;         ///< pairs
  std::uint32_t lanes_ = 0;      ///< pairs that have a lane
  bool has_neighbours_ = false;  ///< neighbours were declared
};

}  // namespace wherry::mailbox
