// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "layout/transfer_class.hpp"

namespace wherry::file {

/// Estimated durations of transfers of a mount's files, through the mount (kernel) and past it (host). The path `auto`
/// chooses by these running estimates, one for each class of transfers. It explores the slower way with at most 1 % of
/// the calls, and for at most 1 % of the total time. Transfers that are forced to go the slower way count as exploring.
///
/// Thread-safe; if two threads change an estimate at once, one sample may be lost. Never blocks or allocates.
class PathCosts {
 public:
  using Kind = layout::TransferKind;
  using Transfer = layout::TransferTraits;
  enum class Way : std::uint8_t { host, kernel };
  struct Choice {
    Way way;
    bool explores;
  };
  static constexpr std::uint64_t kLeastBytes = layout::kLeastTransferBytes;

  /// What it takes to measure a way.
  struct Attempt {
    std::uint64_t calls = 1;         ///< consecutive transfers
    std::uint64_t switching_ns = 0;  ///< time for changing to the way and back
  };

  /// Chooses a way. If it explores, the transfers of the attempt are counted. The caller then makes all of them this
  /// way, and passes this choice to `note` for each.
  [[nodiscard]] Choice choose(const Transfer& transfer, const Attempt& attempt) noexcept {
    const Way best = faster(transfer);
    const std::uint64_t calls = calls_.load(std::memory_order_relaxed) + 1;
    const std::uint64_t explored = explored_.load(std::memory_order_relaxed) + attempt.calls;
    const std::uint64_t by_best = estimate(transfer, best);
    const std::uint64_t by_other = std::max(least_expected(transfer, other(best)), by_best);
    const std::uint64_t lost = lost_.load(std::memory_order_relaxed) + attempt.calls * (by_other - by_best);
    const std::uint64_t time = time_.load(std::memory_order_relaxed);
    if (explored * kShare > calls || (lost + attempt.switching_ns) * kShare > time) return {best, false};
    explored_.fetch_add(attempt.calls, std::memory_order_relaxed);
    lost_.fetch_add(attempt.switching_ns, std::memory_order_relaxed);
    return {other(best), true};
  }
  [[nodiscard]] Choice choose(const Transfer& transfer) noexcept { return choose(transfer, {}); }

  /// For a transfer that goes this way in any case. If the other way is faster, it counts as one that explores.
  [[nodiscard]] Choice force(const Transfer& transfer, Way way) noexcept {
    const bool explores = faster(transfer) != way;
    if (explores) explored_.fetch_add(1, std::memory_order_relaxed);
    return {way, explores};
  }

  /// Records the duration of a transfer.
  /// @param typical  false: it is counted, but the estimate stays
  void note(const Transfer& transfer, const Choice& choice, std::uint64_t nanoseconds, bool typical = true) noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);
    time_.fetch_add(nanoseconds, std::memory_order_relaxed);
    if (choice.explores) {
      const std::uint64_t took = nominal(transfer, nanoseconds);
      const std::uint64_t by_other = estimate(transfer, other(choice.way));
      if (took > by_other) lost_.fetch_add(took - by_other, std::memory_order_relaxed);
    }
    if (typical) measure(transfer, choice.way, nanoseconds);
    layout::TransferWay& way = way_of(classes_[class_of(transfer)], choice.way);
    way.calls.fetch_add(1, std::memory_order_relaxed);
    way.bytes.fetch_add(transfer.bytes, std::memory_order_relaxed);
    if (choice.explores) way.explored.fetch_add(1, std::memory_order_relaxed);
    show(class_of(transfer), choice.way);
  }

  /// Records how long a thread has run on a core, and how long it has waited for one, since its last record.
  void note_core(std::uint64_t ran_ns, std::uint64_t waited_ns) noexcept {
    const auto add = [](std::atomic<std::uint64_t>& sum, std::uint64_t more) {
      const std::uint64_t before = sum.load(std::memory_order_relaxed);
      sum.store(before - before / kWeight + more, std::memory_order_relaxed);
    };
    add(ran_, ran_ns);
    add(waited_, waited_ns);
    const std::uint64_t ran = std::max<std::uint64_t>(ran_.load(std::memory_order_relaxed), 1);
    const std::uint64_t slow = kAlone + kAlone * waited_.load(std::memory_order_relaxed) / ran;
    slowness_.store(std::min(slow, kMostSlowness), std::memory_order_relaxed);
  }

  /// Whether threads wait for a core at least half as long as they run. Then a way that needs more threads takes
  /// longer.
  [[nodiscard]] bool is_crowded() const noexcept {
    return slowness_.load(std::memory_order_relaxed) >= kAlone + kAlone / 2;
  }

  /// Records whether other clients waited for the server during a transfer past the mount.
  void note_server(bool is_shared) noexcept {
    const std::uint64_t shared = shared_.load(std::memory_order_relaxed);
    shared_.store(shared - shared / kWeight + (is_shared ? kAlways / kWeight : 0), std::memory_order_relaxed);
  }

  /// Estimated ns for a transfer of the nominal size of its class. For a class without samples: that of the nearest
  /// class with samples, or a first estimate for free cores and a server that serves nobody else.
  [[nodiscard]] std::uint64_t estimate(const Transfer& transfer, Way way) const noexcept {
    if (const std::uint64_t known = measured(transfer, way); known != 0) return known;
    const Transfer there = elsewhere(transfer);
    const std::uint64_t others = measured(transfer, other(way));
    const auto scaled = [&](std::uint64_t base, std::uint64_t base_of_other) {
      return others == 0 || base_of_other == 0 ? base : std::max<std::uint64_t>(base * others / base_of_other, 1);
    };
    if (const std::uint64_t known = measured(there, way); known != 0) return scaled(known, measured(there, other(way)));
    const std::uint64_t first = first_estimate(transfer, way);
    // Both ways wait for a busy server. A hit by the kernel needs no other thread.
    const bool needs_server = transfer.kind != Kind::hit || way == Way::host;
    if (needs_server && others != 0 && is_server_shared()) return scaled(first, first_estimate(transfer, other(way)));
    return transfer.crowded ? on_crowded_cores(first) : first;
  }

  [[nodiscard]] Way faster(const Transfer& transfer) const noexcept {
    const std::uint64_t by_kernel = layout::counted_by_kernel(transfer, estimate(transfer, Way::kernel));
    return estimate(transfer, Way::host) < by_kernel ? Way::host : Way::kernel;
  }

  /// From now on copies records to these kTransferClasses classes, which must outlive this object; null: to none. Other
  /// threads and processes may read them.
  void show_in(layout::TransferClass* shown) noexcept {
    shown_.store(shown, std::memory_order_relaxed);
    for (std::size_t number = 0; shown != nullptr && number < classes_.size(); ++number) {
      for (const Way way : {Way::host, Way::kernel}) {
        if (way_of(classes_[number], way).estimate_ns.load(std::memory_order_relaxed) != 0) show(number, way);
      }
    }
  }

  /// Call in a forked child: keeps the estimates, drops the parent's counts, and stops the copies.
  void forget_after_fork() noexcept {
    shown_.store(nullptr, std::memory_order_relaxed);
    for (layout::TransferClass& one : classes_) {
      for (layout::TransferWay* const way : {&one.host, &one.kernel}) {
        // Reads first: a store would give the child a page of its own.
        if (way->calls.load(std::memory_order_relaxed) == 0) continue;
        for (layout::Counter* const count : {&way->calls, &way->bytes, &way->explored})
          count->store(0, std::memory_order_relaxed);
      }
    }
  }

 private:
  /// As `estimate`, but nothing is expected of a shared server. Otherwise a way that was never measured would look too
  /// slow to explore.
  [[nodiscard]] std::uint64_t least_expected(const Transfer& transfer, Way way) const noexcept {
    if (const std::uint64_t known = measured(transfer, way); known != 0) return known;
    const std::uint64_t known = measured(elsewhere(transfer), way);
    const std::uint64_t alone = known != 0 ? known : first_estimate(transfer, way);
    return transfer.crowded ? on_crowded_cores(alone) : alone;
  }

  [[nodiscard]] std::uint64_t on_crowded_cores(std::uint64_t alone) const noexcept {
    return alone * slowness_.load(std::memory_order_relaxed) / kAlone;
  }

  [[nodiscard]] bool is_server_shared() const noexcept {
    return shared_.load(std::memory_order_relaxed) >= kAlways / 2;
  }
  static constexpr Transfer elsewhere(Transfer transfer) {
    transfer.crowded = !transfer.crowded;
    return transfer;
  }

  /// The duration of a transfer of the nominal size of the class.
  static constexpr std::uint64_t nominal(const Transfer& transfer, std::uint64_t nanoseconds) {
    return nanoseconds * nominal_bytes(size_class(transfer.bytes)) / std::max<std::uint64_t>(transfer.bytes, 1);
  }

  void measure(const Transfer& transfer, Way by, std::uint64_t nanoseconds) noexcept {
    const std::uint64_t now = estimate(transfer, by);
    // The mean of the first samples: the very first one may touch new memory.
    std::atomic<std::uint8_t>& samples = samples_[class_of(transfer)][by == Way::host ? 0 : 1];
    // Limits the sample: a thread that had no core for a while does not measure the way. If a third of the samples are
    // such, the estimate is twice the others.
    const std::uint64_t growth = samples.load(std::memory_order_relaxed) < kWeight ? kMostFirstGrowth : kMostGrowth;
    const std::uint64_t sample = std::min(nominal(transfer, nanoseconds), now * growth);
    const auto weight =
        static_cast<std::uint8_t>(std::min<std::uint64_t>(samples.load(std::memory_order_relaxed) + 1, kWeight));
    samples.store(weight, std::memory_order_relaxed);
    const std::uint64_t after = now - now / weight + sample / weight;
    way_of(classes_[class_of(transfer)], by)
        .estimate_ns.store(std::max<std::uint64_t>(after, 1), std::memory_order_relaxed);
  }

  static constexpr std::uint64_t kShare = 100;
  static constexpr std::uint64_t kWeight = 8;
  static constexpr std::uint64_t kMostFirstGrowth = 4;
  static constexpr std::uint64_t kMostGrowth = 2;
  static constexpr std::uint64_t kAlways = 1024;  // value of shared_ if the server was always shared
  static constexpr std::uint64_t kAlone = 256;    // slowness of a thread that never waits for a core
  static constexpr std::uint64_t kMostSlowness = 256 * kAlone;

  static constexpr Way other(Way way) { return way == Way::host ? Way::kernel : Way::host; }
  static constexpr std::size_t size_class(std::uint64_t bytes) {
    const auto least = static_cast<std::size_t>(std::bit_width(kLeastBytes));
    return std::clamp(static_cast<std::size_t>(std::bit_width(bytes)), least, least + layout::kTransferSizes - 1) -
           least;
  }
  static constexpr std::uint64_t nominal_bytes(std::size_t size) { return kLeastBytes << size; }
  static constexpr std::size_t class_of(const Transfer& transfer) {
    return layout::transfer_class(transfer.kind, transfer.in_order, transfer.crowded, size_class(transfer.bytes));
  }

  static layout::TransferWay& way_of(layout::TransferClass& one, Way way) {
    return way == Way::host ? one.host : one.kernel;
  }
  static const layout::TransferWay& way_of(const layout::TransferClass& one, Way way) {
    return way == Way::host ? one.host : one.kernel;
  }

  void show(std::size_t number, Way way) noexcept {
    layout::TransferClass* const shown = shown_.load(std::memory_order_relaxed);
    if (shown == nullptr) return;
    const layout::TransferWay& from = way_of(classes_[number], way);
    layout::TransferWay& to = way_of(shown[number], way);
    to.calls.store(from.calls.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.bytes.store(from.bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.estimate_ns.store(from.estimate_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.explored.store(from.explored.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  /// The estimate of this class, or of the one in the other order. 0: there are no samples.
  [[nodiscard]] std::uint64_t measured(const Transfer& transfer, Way way) const noexcept {
    Transfer near = transfer;
    for (const bool in_order : {transfer.in_order, !transfer.in_order}) {
      near.in_order = in_order;
      const auto known = way_of(classes_[class_of(near)], way).estimate_ns.load(std::memory_order_relaxed);
      if (known != 0) return known;
    }
    return 0;
  }

  /// The estimate without samples, on free cores: ns per call, and ns per KiB. The mount's hits are mostly in place.
  static constexpr std::uint64_t first_estimate(const Transfer& transfer, Way way) {
    struct Cost {
      std::uint64_t call;
      std::uint64_t each_kib;
    };
    constexpr std::array<std::array<Cost, 2>, 3> kCosts{
        {{{{6'000, 80}, {1'000, 80}}}, {{{6'000, 80}, {40'000, 700}}}, {{{10'000, 90}, {40'000, 600}}}}};
    const Cost& cost = kCosts[static_cast<std::size_t>(transfer.kind)][static_cast<std::size_t>(way)];
    return cost.call + cost.each_kib * (nominal_bytes(size_class(transfer.bytes)) / 1024);
  }

  std::array<layout::TransferClass, layout::kTransferClasses> classes_{};
  /// Samples in the estimates of each class, by the host and by the kernel; at most kWeight.
  std::array<std::array<std::atomic<std::uint8_t>, 2>, layout::kTransferClasses> samples_{};
  std::atomic<layout::TransferClass*> shown_{nullptr};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> explored_{0};
  std::atomic<std::uint64_t> time_{0};    ///< total of all transfers, in ns
  std::atomic<std::uint64_t> lost_{0};    ///< extra time of explorations, in ns
  std::atomic<std::uint64_t> shared_{0};  ///< running share of transfers whose server was shared, times kAlways
  // Decaying sums of all threads, in ns.
  std::atomic<std::uint64_t> ran_{0};
  std::atomic<std::uint64_t> waited_{0};
  /// The time that threads take, divided by that with a core of their own; times kAlone.
  std::atomic<std::uint64_t> slowness_{kAlone};
};

}  // namespace wherry::file
