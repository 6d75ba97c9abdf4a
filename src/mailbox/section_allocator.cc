// SPDX-License-Identifier: Apache-2.0
#include "mailbox/section_allocator.hpp"

#include <algorithm>

namespace wherry::mailbox {
namespace {

/// Fewest lines of a top sender beside its header. So the budget bounds the number of top senders.
constexpr Lines kLeastPayload = 4;

Lines lines_of(std::size_t bytes) {
  return static_cast<Lines>(std::min<std::size_t>(bytes / layout::kMailboxLine, UINT32_MAX / 2));
}

}  // namespace

SectionAllocator::SectionAllocator(Pairs& pairs, const MailboxOptions& options)
    : pairs_(pairs),
      header_(lines_of(options.header)),
      initial_(options.quiet == 0 ? header_ : lines_of(options.quiet)),
      lane_(lines_of(options.lane)),
      budget_(lines_of(options.budget)),
      layout_(options.layout),
      ledger_(budget_) {}

void SectionAllocator::reserve(std::size_t pairs) {
  ledger_.reserve(pairs);
  top_senders_.reserve(pairs);
}

std::size_t SectionAllocator::initial_bytes() const noexcept { return initial_ * layout::kMailboxLine; }

std::size_t SectionAllocator::most_bytes() const noexcept {
  return (std::size_t{std::max(budget_, header_)} + lane_) * layout::kMailboxLine;
}

std::uint32_t SectionAllocator::weight_of(const Pair& pair) const noexcept {
  if (follows_traffic()) return top_senders_.is_top_sender(pair.number) ? 1 : 0;
  return layout_ == Layout::topology ? pair.weight : 1;
}

/// Grants the initial section at once, whatever the budget is: a peer that cannot send is never seen to send.
void SectionAllocator::join(Pair& pair) noexcept {
  ++open_;
  pair.has_sent = initial_ == header_;
  const Lines lines = std::min(initial_, pair.in->most_lines());
  ledger_.open(pair.number, lines);
  pair.in->grant(lines);
  allocate();
}

void SectionAllocator::leave(Pair& pair) noexcept {
  --open_;
  ledger_.close(pair.number);
  set_lane(pair, false);
  top_senders_.forget(pair.number);
}

Division SectionAllocator::division() const noexcept {
  Division division{
      .budget = budget_, .header = header_, .peers = static_cast<std::uint32_t>(open_), .quiet_header = initial_};
  pairs_.for_each_open([&](const Pair& pair) {
    division.weights += weight_of(pair);
    division.quiet += is_initial(pair) ? 1 : 0;
  });
  return division;
}

void SectionAllocator::allocate() noexcept {
  const Division all = division();
  top_senders_.limit(std::max<std::size_t>(1, all.payload() / kLeastPayload));
  pairs_.for_each_open([&](const Pair& pair) {
    const Lines share = is_initial(pair) ? initial_ : all.share(weight_of(pair));
    const Lines lines = share + (pair.has_lane ? lane_ : 0);
    ledger_.set_target(pair.number, std::min(lines, pair.in->most_lines()));
  });
  issue_grants();
}

void SectionAllocator::issue_grants() noexcept {
  ledger_.grant_pending([&](std::uint32_t peer, Lines lines) { pairs_.find(peer)->in->grant(lines); });
}

void SectionAllocator::on_agreement(Pair& pair) noexcept {
  ++pair.changes;
  ledger_.on_agreement(pair.number);
  if (ledger_.has_pending()) issue_grants();
}

void SectionAllocator::on_first_message(Pair& pair) noexcept {
  pair.has_sent = true;
  allocate();
}

void SectionAllocator::set_layout(Layout layout) noexcept {
  layout_ = layout;
  allocate();
}

void SectionAllocator::set_budget(std::size_t bytes) noexcept {
  budget_ = lines_of(bytes);
  ledger_.set_budget(budget_ + std::uint64_t{lanes_} * lane_);
  allocate();
}

void SectionAllocator::widen(Pair& pair, bool wide) noexcept {
  if (pair.has_lane == wide || lane_ == 0) return;
  set_lane(pair, wide);
  allocate();
}

/// A revoked lane stays held until the peer has agreed. Meanwhile no other section grows into it.
void SectionAllocator::set_lane(Pair& pair, bool has) noexcept {
  lanes_ += has ? 1 : 0;
  lanes_ -= pair.has_lane ? 1 : 0;
  pair.has_lane = has;
  ledger_.set_budget(budget_ + std::uint64_t{lanes_} * lane_);
}

void SectionAllocator::set_neighbours(std::span<const Mailbox::Neighbour> neighbours) {
  for (const auto& pair : pairs_) {
    if (pair != nullptr) pair->weight = 0;
  }
  for (const Mailbox::Neighbour& neighbour : neighbours) {
    if (Pair* pair = pairs_.find(neighbour.peer)) pair->weight = neighbour.weight;
  }
  has_neighbours_ = !neighbours.empty();
  allocate();
}

}  // namespace wherry::mailbox
