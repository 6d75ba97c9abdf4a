// SPDX-License-Identifier: Apache-2.0
// Checks the memory of a message: if it cannot be accessed, the call fails with EFAULT, as the kernel's own calls do.
// To ask the kernel costs as much as a short message, and a sixth of one of 64 KiB. Most messages of a program begin in
// the same few pages, so recent answers are reused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/populate.hpp"

namespace wherry::scif {

class SeenPages {
 public:
  explicit SeenPages(memory::Access access) : access_(access) {}

  /// Whether all of `memory` can be accessed, or could be at one of the last 256 calls with memory that begins in the
  /// same page.
  bool are_there(std::span<const std::byte> memory) {
    if (memory.empty()) return true;
    const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::uintptr_t first = start >> kPageBits;
    const std::uintptr_t last = (start + memory.size() - 1) >> kPageBits;
    Seen& seen = places_[first % kPlaces];
    if (seen.uses != 0 && seen.first == first && first <= last && last <= seen.last) {
      --seen.uses;
      return true;
    }
    if (memory::can_populate() && !memory::is_there(memory, access_)) return false;
    seen = {.first = first, .last = last, .uses = kUses};
    return true;
  }

 private:
  static constexpr int kPageBits = 12;  ///< larger pages count as several of these
  static constexpr int kUses = 256;
  static constexpr std::size_t kPlaces = 8;
  struct Seen {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    int uses = 0;
  };

  const memory::Access access_;
  std::array<Seen, kPlaces> places_{};
};

}  // namespace wherry::scif
