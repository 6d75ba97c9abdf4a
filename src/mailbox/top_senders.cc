// SPDX-License-Identifier: Apache-2.0
#include "mailbox/top_senders.hpp"

#include <algorithm>

namespace wherry::mailbox {

void TopSenders::reserve(std::size_t count) {
  seen_.resize(std::max(seen_.size(), count));
  listed_.reserve(seen_.size());
}

void TopSenders::list(std::uint32_t peer) noexcept {
  seen_[peer].listed = true;
  listed_.push_back(peer);
}

void TopSenders::forget(std::uint32_t peer) noexcept {
  Seen& seen = seen_[peer];
  if (seen.is_top) --count_;
  if (seen.listed) std::erase(listed_, peer);
  seen = {};
}

bool TopSenders::end_period() noexcept {
  pieces_ = 0;
  const std::uint64_t greatest = age();
  const bool waiting =
      std::any_of(listed_.begin(), listed_.end(), [&](std::uint32_t peer) { return begins(seen_[peer], greatest); });
  // A top sender is demoted only if another peer begins.
  const bool changed = waiting && demote(greatest) + promote(greatest) != 0;
  period_ = changed ? kShortestPeriod : std::min(2 * period_, kLongestPeriod);
  return changed;
}

/// Halves the scores and adds this period's counts. Returns the greatest score.
std::uint64_t TopSenders::age() noexcept {
  std::uint64_t greatest = 0;
  std::erase_if(listed_, [&](std::uint32_t peer) {
    Seen& seen = seen_[peer];
    seen.score = seen.score / 2 + seen.now;
    seen.now = 0;
    greatest = std::max(greatest, seen.score);
    seen.listed = seen.is_top || seen.score != 0;
    return !seen.listed;
  });
  return greatest;
}

std::size_t TopSenders::demote(std::uint64_t greatest) noexcept {
  std::size_t ended = 0;
  for (const std::uint32_t peer : listed_) {
    Seen& seen = seen_[peer];
    if (!seen.is_top || seen.score >= greatest / kEnds) continue;
    seen.is_top = false;
    --count_;
    ++ended;
  }
  return ended;
}

std::size_t TopSenders::promote(std::uint64_t greatest) noexcept {
  std::size_t begun = 0;
  for (const std::uint32_t peer : listed_) {
    Seen& seen = seen_[peer];
    if (count_ >= most_ || !begins(seen, greatest)) continue;
    seen.is_top = true;
    ++count_;
    ++begun;
  }
  return begun;
}

}  // namespace wherry::mailbox
