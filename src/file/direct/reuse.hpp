// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace wherry::file {

/// Decides when a file that a program reads past its mount is worth bringing into the page cache: a read past the mount
/// leaves nothing there, so each later read would miss, too. For one open file.
///
/// It adds up what repeated reads have lost, because they were not hits, and what it takes to read all of it through
/// the mount once. When the first exceeds the second, repeated reads go through the mount. So a program loses at most
/// twice what is inevitable, however often it reads the file. If the cache does not keep what was read, the next
/// attempt comes four times later.
///
/// Thread-safe; if two threads change a sum at once, one change may be lost.
class Reuse {
 public:
  /// Estimated ns of one read.
  struct Costs {
    std::uint64_t past = 0;     ///< past the mount
    std::uint64_t through = 0;  ///< through the mount, if pages are missing
    std::uint64_t hit = 0;      ///< through the mount, if they are there
  };

  /// Call for each read that misses and would go past the mount. Returns whether it should go through the mount.
  /// @param again  the program has read this part of the file before
  bool is_worth_filling(const Costs& costs, bool again) noexcept {
    const std::uint64_t more = costs.through > costs.past ? costs.through - costs.past : 0;
    const std::uint64_t saved = costs.past > costs.hit ? costs.past - costs.hit : 0;
    if (!again) {
      price_.fetch_add(more * factor_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return false;
    }
    if (saved == 0) return false;
    const std::uint64_t price = price_.load(std::memory_order_relaxed);
    const std::uint64_t lost = lost_.fetch_add(saved, std::memory_order_relaxed) + saved;
    if (lost < price) return false;
    const std::uint64_t paid = paid_.fetch_add(more, std::memory_order_relaxed) + more;
    if (paid > 2 * price / factor_.load(std::memory_order_relaxed)) {
      start_again(price);
      return false;
    }
    return true;
  }

  /// For another file.
  void reset() noexcept {
    factor_.store(1, std::memory_order_relaxed);
    for (std::atomic<std::uint64_t>* const sum : {&price_, &lost_, &paid_}) sum->store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kLater = 4;
  static constexpr std::uint64_t kMostFactor = 1 << 20;

  /// The file was read twice, and its pages are still missing.
  void start_again(std::uint64_t price) noexcept {
    const std::uint64_t factor = factor_.load(std::memory_order_relaxed);
    if (factor < kMostFactor) {
      factor_.store(factor * kLater, std::memory_order_relaxed);
      price_.store(price * kLater, std::memory_order_relaxed);
    }
    lost_.store(0, std::memory_order_relaxed);
    paid_.store(0, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> price_{0};  ///< of reading all through the mount, times `factor_`; in ns like the others
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> paid_{0};    ///< for reads through the mount
  std::atomic<std::uint64_t> factor_{1};  ///< grows when the cache does not keep the file
};

}  // namespace wherry::file
