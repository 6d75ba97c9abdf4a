// SPDX-License-Identifier: Apache-2.0
// Finds the pages of private memory that have content. May include: base.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>

#include "base/unique_fd.hpp"

namespace wherry::memory {

class TouchedPages {
 public:
  /// Most pages per call.
  static constexpr std::size_t kMost = 512;

  TouchedPages();

  /// Returns which of these whole pages of private memory without a file were touched. The others are not present yet,
  /// and read as zero. Returns all if the kernel does not report it. Stores nothing outside the caller's stack.
  /// @param held  StoreGuard holds the pages. Its mark makes an untouched page look swapped out. Such a page counts as
  ///              touched only if the machine has any page swapped out. Before Linux 6.4 the guard makes untouched
  ///              pages zero pages, which count as touched
  [[nodiscard]] std::bitset<kMost> in(std::span<const std::byte> memory, bool held = false) const noexcept;

 private:
  const UniqueFd pagemap_;  // of this process only: a forked child needs its own object
};

}  // namespace wherry::memory
