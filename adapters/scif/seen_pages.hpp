// SPDX-License-Identifier: Apache-2.0
// Whether the memory of a message is there: if not, the call fails with EFAULT, as the kernel's own calls do. To ask
// the kernel costs as much as a short message, and most messages of a program lie in the same few pages, so those where
// some lay lately are not asked for again each time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/populate.hpp"

namespace wherry::scif {

class SeenPages {
 public:
  explicit SeenPages(fabric::Access access) : access_(access) {}

  /// Whether all of `memory` can be accessed, or could be at one of the last 256 calls with the same pages.
  bool are_there(std::span<const std::byte> memory) {
    if (memory.empty()) return true;
    const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::uintptr_t first = start >> kPageBits;
    const std::uintptr_t last = (start + memory.size() - 1) >> kPageBits;
    const bool few = last == first || last == first + 1;
    if (few && use(first) && (first == last || use(last))) return true;
    if (fabric::can_populate() && !fabric::is_there(memory, access_)) return false;
    if (few) {
      place_of(first) = {.page = first, .uses = kUses};
      place_of(last) = {.page = last, .uses = kUses};
    }
    return true;
  }

 private:
  static constexpr int kPageBits = 12;  ///< where pages are larger, these are parts of them
  static constexpr int kUses = 256;
  static constexpr std::size_t kPlaces = 8;
  struct Seen {
    std::uintptr_t page = 0;
    int uses = 0;
  };

  Seen& place_of(std::uintptr_t page) { return places_[page % kPlaces]; }
  bool use(std::uintptr_t page) {
    Seen& seen = place_of(page);
    if (seen.page != page || seen.uses == 0) return false;
    --seen.uses;
    return true;
  }

  const fabric::Access access_;
  std::array<Seen, kPlaces> places_{};
};

}  // namespace wherry::scif
