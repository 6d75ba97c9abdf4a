// SPDX-License-Identifier: Apache-2.0
//
// How far a descriptor's reader has come, in one word. A reader in order is looked at once in file::kSpan bytes: what
// is found there decides for all of its reads up to the span's end, so that a first pass costs what the kernel's calls
// do.
#pragma once

#include <cstdint>

#include "descriptors.hpp"
#include "file/cache.hpp"

namespace wherry::preload {

struct Progress {
  enum class Way : std::uint8_t {
    look,     ///< the next read is looked for
    kernels,  ///< up to the span's end all is the kernel's: it was not read before
    fills,    ///< up to the span's end every miss fills: it was read before
  };
  static constexpr unsigned kWayBits = 2;
  /// How reads of this descriptor go: chosen for it alone, or when its file was looked at.
  enum class Choice : std::uint8_t { none, automatic, comp };
  static constexpr unsigned kChoiceBits = 2;

  std::uint64_t end = 0;  ///< offset behind the last read; 0: there was none
  Way way = Way::look;
  Choice choice = Choice::none;

  static Progress of(const Entry& entry) {
    const std::uint64_t word = entry.progress.load(std::memory_order_relaxed);
    return {.end = word >> (kWayBits + kChoiceBits),
            .way = static_cast<Way>(word & ((1U << kWayBits) - 1)),
            .choice = static_cast<Choice>(word >> kWayBits & ((1U << kChoiceBits) - 1))};
  }
  void store(Entry& entry) const {
    entry.progress.store(end << (kWayBits + kChoiceBits) | static_cast<std::uint64_t>(choice) << kWayBits |
                             static_cast<std::uint64_t>(way),
                         std::memory_order_relaxed);
  }

  /// Every read fills, however long.
  [[nodiscard]] bool eager() const { return choice == Choice::comp; }
  [[nodiscard]] bool begins() const { return end == 0; }
  /// Whether a read at `offset` is one in order: goes on, begins, or begins again.
  [[nodiscard]] bool leads_to(std::uint64_t offset) const { return offset == end || offset == 0 || begins(); }
  /// Whether what was decided for the last read holds for one at `offset`.
  [[nodiscard]] bool holds_at(std::uint64_t offset) const { return offset == end && offset % file::kSpan != 0; }
  /// After a hit of so many bytes.
  [[nodiscard]] Progress after_hit(std::uint64_t offset, std::uint64_t bytes) const {
    return after(offset, bytes, holds_at(offset) ? way : Way::look);
  }
  /// After a read of so many bytes.
  [[nodiscard]] Progress after(std::uint64_t offset, std::uint64_t bytes, Way decided) const {
    const bool same_span = offset / file::kSpan == (offset + bytes - 1) / file::kSpan;
    return {.end = offset + bytes, .way = same_span ? decided : Way::look, .choice = choice};
  }
};

}  // namespace wherry::preload
