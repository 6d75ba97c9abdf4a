// SPDX-License-Identifier: Apache-2.0
// Which pages of private memory have any content. May include: base.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>

#include "base/unique_fd.hpp"

namespace wherry::memory {

class TouchedPages {
 public:
  /// Pages asked for at once at most.
  static constexpr std::size_t kMost = 512;

  TouchedPages();

  /// Those of private memory without a file, whole pages, that have been touched: the others have no pages yet and are
  /// zero. All where the kernel does not tell. Stores nothing but on the caller's stack.
  /// @param held  by StoreGuard, which marks the others: they look like pages swapped out. As such they count only
  /// where
  ///              any page of the machine's is, or where zero pages have taken their place (before Linux 6.4)
  [[nodiscard]] std::bitset<kMost> in(std::span<const std::byte> memory, bool held = false) const noexcept;

 private:
  const UniqueFd pagemap_;  // of this process: a forked child makes its own
};

}  // namespace wherry::memory
