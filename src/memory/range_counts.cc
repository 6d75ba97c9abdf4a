// SPDX-License-Identifier: Apache-2.0
#include "memory/range_counts.hpp"

#include <algorithm>
#include <iterator>

namespace wherry::memory {

void RangeCounts::split(std::uint64_t at) {
  const auto next = parts_.upper_bound(at);
  if (next == parts_.begin()) return;
  const auto part = std::prev(next);
  if (part->first == at || part->second.end <= at) return;
  parts_.emplace_hint(next, at, part->second);
  part->second.end = at;
}

/// Calls `change` for every part of the range. Fills gaps with parts without a use first.
template <class Change>
void RangeCounts::change(std::uint64_t start, std::uint64_t end, Change&& change) {
  split(start);
  split(end);
  auto part = parts_.lower_bound(start);
  for (std::uint64_t at = start; at < end; ++part) {
    if (part == parts_.end() || part->first != at) {
      const std::uint64_t gap_end = part == parts_.end() ? end : std::min(end, part->first);
      part = parts_.emplace_hint(part, at, Part{.end = gap_end, .uses = 0, .kept = false});
      idle_bytes_ += gap_end - at;
    }
    const std::uint64_t bytes = part->second.end - at;
    if (part->second.idle()) idle_bytes_ -= bytes;
    change(part->second);
    if (part->second.idle()) idle_bytes_ += bytes;
    at = part->second.end;
  }
}

void RangeCounts::add(std::uint64_t start, std::uint64_t end) {
  change(start, end, [](Part& part) { ++part.uses; });
}

void RangeCounts::remove(std::uint64_t start, std::uint64_t end) {
  change(start, end, [](Part& part) { part.uses -= part.uses == 0 ? 0 : 1; });
}

void RangeCounts::keep(std::uint64_t start, std::uint64_t end) {
  change(start, end, [](Part& part) { part.kept = true; });
}

void RangeCounts::forget(std::uint64_t start, std::uint64_t end) {
  keep(start, end);
  parts_.erase(parts_.lower_bound(start), parts_.lower_bound(end));
}

bool RangeCounts::in_use(std::uint64_t start, std::uint64_t end) const {
  auto part = parts_.upper_bound(start);
  if (part != parts_.begin()) --part;
  for (; start < end; ++part) {
    if (part == parts_.end() || part->first > start || part->second.end <= start || part->second.uses == 0)
      return false;
    start = part->second.end;
  }
  return true;
}

std::vector<RangeCounts::Range> RangeCounts::idle() const {
  std::vector<Range> ranges;
  for (const auto& [start, part] : parts_) {
    if (!part.idle()) continue;
    if (!ranges.empty() && ranges.back().end == start) {
      ranges.back().end = part.end;
    } else {
      ranges.push_back({start, part.end});
    }
  }
  return ranges;
}

}  // namespace wherry::memory
