// SPDX-License-Identifier: Apache-2.0
// Layouts: what each peer's section should be, and the grants that bring it about.
#include <algorithm>

#include "mailbox/impl.hpp"

namespace wherry {
namespace {

/// With more peers than this, sections of equal size would all be small: they go to those that talk.
constexpr std::size_t kMostEqual = 100;
/// Lines that a talker has beside its header, at least: there are so few talkers.
constexpr mailbox::Lines kLeastPayload = 4;

}  // namespace

bool Mailbox::Impl::counts() const noexcept {
  switch (layout_) {
    case Layout::equal:
      return open_ > kMostEqual;
    case Layout::topology:
      return !neighbours_;
    case Layout::adaptive:
      break;
  }
  return true;
}

std::uint32_t Mailbox::Impl::weight_of(const Pair& pair) const noexcept {
  if (counts()) return talkers_.talks(pair.number) ? 1 : 0;
  return layout_ == Layout::topology ? pair.weight : 1;
}

/// The header, or what a peer has before it sends, is granted at once: one that can say nothing cannot be seen to talk
/// either.
void Mailbox::Impl::join_layout(Pair& pair) noexcept {
  ++open_;
  pair.heard = quiet_header_ == header_;
  const auto header = std::min(quiet_header_, pair.in->most_lines());
  ledger_.open(pair.number, header);
  pair.in->grant(header);
  divide();
}

void Mailbox::Impl::leave_layout(Pair& pair) noexcept {
  --open_;
  ledger_.close(pair.number);
  count_lanes(pair, false);
  talkers_.forget(pair.number);
}

void Mailbox::Impl::divide() noexcept {
  mailbox::Division division{
      .budget = budget_, .header = header_, .peers = static_cast<std::uint32_t>(open_), .quiet_header = quiet_header_};
  for (const auto& pair : pairs_) {
    if (pair == nullptr || !pair->is_open()) continue;
    division.weights += weight_of(*pair);
    division.quiet += is_quiet(*pair) ? 1 : 0;
  }
  talkers_.limit(std::max<std::size_t>(1, division.payload() / kLeastPayload));
  for (const auto& pair : pairs_) {
    if (pair == nullptr || !pair->is_open()) continue;
    const mailbox::Lines share = is_quiet(*pair) ? quiet_header_ : division.share(weight_of(*pair));
    const mailbox::Lines lines = share + (pair->wide ? lane_ : 0);
    ledger_.aim(pair->number, std::min(lines, pair->in->most_lines()));
  }
  settle();
}

void Mailbox::Impl::settle() noexcept {
  ledger_.settle([&](std::uint32_t peer, mailbox::Lines lines) { pairs_[peer]->in->grant(lines); });
}

/// The peer has followed a grant.
void Mailbox::Impl::agreed(Pair& pair) noexcept {
  ++pair.changes;
  ledger_.agreed(pair.number);
  if (!ledger_.settled()) settle();
}

void Mailbox::Impl::count(Pair& pair, std::size_t bytes) noexcept {
  if (!pair.heard) {
    pair.heard = true;
    divide();
  }
  if (counts() && talkers_.saw(pair.number, bytes) && talkers_.judge()) divide();
}

void Mailbox::Impl::set_layout(Layout layout) noexcept {
  layout_ = layout;
  divide();
}

void Mailbox::Impl::set_budget(std::size_t bytes) noexcept {
  budget_ = static_cast<mailbox::Lines>(std::min<std::size_t>(bytes / layout::kMailboxLine, UINT32_MAX / 2));
  ledger_.set_budget(budget_ + std::uint64_t{lanes_} * lane_);
  divide();
}

void Mailbox::Impl::widen(Peer peer, bool wide) noexcept {
  Pair* pair = find_open(peer);
  if (pair == nullptr || pair->wide == wide || lane_ == 0) return;
  count_lanes(*pair, wide);
  divide();
}

/// What is taken back stays held until the peer has agreed; no other share grows into it meanwhile.
void Mailbox::Impl::count_lanes(Pair& pair, bool wide) noexcept {
  lanes_ += wide ? 1 : 0;
  lanes_ -= pair.wide ? 1 : 0;
  pair.wide = wide;
  ledger_.set_budget(budget_ + std::uint64_t{lanes_} * lane_);
}

void Mailbox::Impl::set_neighbours(std::span<const Neighbour> neighbours) {
  for (const auto& pair : pairs_) {
    if (pair != nullptr) pair->weight = 0;
  }
  for (const Neighbour& neighbour : neighbours) {
    if (Pair* pair = find(neighbour.peer)) pair->weight = neighbour.weight;
  }
  neighbours_ = !neighbours.empty();
  divide();
}

}  // namespace wherry
