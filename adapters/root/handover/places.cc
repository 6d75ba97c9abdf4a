// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>
#include <iterator>

namespace wherry::root {

std::size_t Places::free_until(std::size_t begin, std::size_t end) const {
  const auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second > begin) return begin;
  return next == ends_.end() ? end : std::min(end, next->first);
}

std::optional<std::size_t> Places::first_fit(std::size_t bytes, std::size_t end) const {
  std::size_t place = 0;
  for (const auto& [begin, behind] : ends_) {
    if (begin - place >= bytes) break;
    place = behind;
  }
  if (place > end || end - place < bytes) return std::nullopt;
  return place;
}

}  // namespace wherry::root
