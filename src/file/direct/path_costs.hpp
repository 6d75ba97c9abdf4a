// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry::file {

/// What transfers of a mount's files take, by the mount and past it: running estimates for each kind and size, by which
/// the path `auto` chooses for each call. The other way is tried by at most 1 % of the calls, for at most 1 % of the
/// time of all.
///
/// Threads: any; an estimate that two threads change at once may lose one sample. Nothing blocks or allocates.
class PathCosts {
 public:
  enum class Kind : std::uint8_t {
    hit,   ///< a read whose pages are in this kernel's memory
    miss,  ///< a read that lacks some
    write,
  };
  enum class Way : std::uint8_t { host, kernel };
  struct Choice {
    Way way;
    bool explores;
  };
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;

  [[nodiscard]] Choice choose(Kind kind, std::uint64_t bytes) noexcept {
    const Way best = estimate(kind, Way::host, bytes) < estimate(kind, Way::kernel, bytes) ? Way::host : Way::kernel;
    const std::uint64_t calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t explored = explored_.load(std::memory_order_relaxed);
    const bool in_turn = (explored + 1) * kShare <= calls;
    // What the other way is expected to take longer must fit, too.
    const std::uint64_t more = estimate(kind, other(best), bytes) - estimate(kind, best, bytes);
    const std::uint64_t lost = lost_.load(std::memory_order_relaxed) + more;
    if (!in_turn || lost * kShare > time_.load(std::memory_order_relaxed)) return {best, false};
    explored_.fetch_add(1, std::memory_order_relaxed);
    lost_.fetch_add(more, std::memory_order_relaxed);
    return {other(best), true};
  }

  /// A transfer has taken so long.
  void note(Kind kind, Way way, std::uint64_t bytes, std::uint64_t nanoseconds) noexcept {
    time_.fetch_add(nanoseconds, std::memory_order_relaxed);
    auto& place = estimates_[cell(kind, way, bytes)];
    const std::uint64_t now = estimate(kind, way, bytes);
    const std::uint64_t nominal = nanoseconds * nominal_bytes(bytes) / std::max<std::uint64_t>(bytes, 1);
    // A sample during which the thread had no core does not measure the way.
    const std::uint64_t sample = std::min(nominal, now * kMostGrowth);
    const bool is_first = place.load(std::memory_order_relaxed) == 0;
    const std::uint64_t after = is_first ? sample : now - now / kWeight + sample / kWeight;
    place.store(std::max<std::uint64_t>(after, 1), std::memory_order_relaxed);
  }

  /// In nanoseconds, for a transfer of the size that stands for this one.
  [[nodiscard]] std::uint64_t estimate(Kind kind, Way way, std::uint64_t bytes) const noexcept {
    const std::uint64_t known = estimates_[cell(kind, way, bytes)].load(std::memory_order_relaxed);
    return known != 0 ? known : first_estimate(kind, way, nominal_bytes(bytes));
  }

 private:
  static constexpr std::size_t kSizes = 9;
  static constexpr std::uint64_t kShare = 100;
  static constexpr std::uint64_t kWeight = 8;
  static constexpr std::uint64_t kMostGrowth = 4;

  static constexpr Way other(Way way) { return way == Way::host ? Way::kernel : Way::host; }
  static constexpr std::size_t size_class(std::uint64_t bytes) {
    const auto least = static_cast<std::size_t>(std::bit_width(kLeastBytes));
    return std::clamp(static_cast<std::size_t>(std::bit_width(bytes)), least, least + kSizes - 1) - least;
  }
  static constexpr std::uint64_t nominal_bytes(std::uint64_t bytes) { return kLeastBytes << size_class(bytes); }
  static constexpr std::size_t cell(Kind kind, Way way, std::uint64_t bytes) {
    return (static_cast<std::size_t>(kind) * 2 + static_cast<std::size_t>(way)) * kSizes + size_class(bytes);
  }
  /// Of a machine that has not been measured: a call, and so many ns for each KiB.
  static constexpr std::uint64_t first_estimate(Kind kind, Way way, std::uint64_t bytes) {
    struct Cost {
      std::uint64_t call;
      std::uint64_t each_kib;
    };
    constexpr std::array<std::array<Cost, 2>, 3> kCosts{
        {{{{20'000, 200}, {15'000, 120}}}, {{{20'000, 200}, {40'000, 700}}}, {{{60'000, 200}, {40'000, 600}}}}};
    const Cost& cost = kCosts[static_cast<std::size_t>(kind)][static_cast<std::size_t>(way)];
    return cost.call + cost.each_kib * (bytes / 1024);
  }

  std::array<std::atomic<std::uint64_t>, 3 * 2 * kSizes> estimates_{};  ///< in ns; 0: none yet
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> explored_{0};
  std::atomic<std::uint64_t> time_{0};  ///< of all transfers, in ns
  std::atomic<std::uint64_t> lost_{0};  ///< that explorations were expected to take longer, in ns
};

}  // namespace wherry::file
