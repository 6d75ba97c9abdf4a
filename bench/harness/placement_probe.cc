// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/placement_probe.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "arch/cache_line.hpp"
#include "arch/pause.hpp"
#include "base/clock.hpp"
#include "bench/harness/participant.hpp"

namespace wherry::bench {
namespace {

constexpr std::uint64_t kTimeoutNs = 20'000'000;
constexpr std::uint64_t kRoundTrips = 50;  // of a batch
constexpr std::size_t kBatches = 20;
// 64 KiB in all: in the private caches of every make, so that what is measured is the way between the cores.
constexpr std::size_t kPiece = std::size_t{16} << 10;
constexpr std::size_t kPieces = 4;
constexpr std::uint64_t kCopies = 32;  // of a batch
constexpr std::size_t kCopyBatches = 10;

/// A counter that one thread writes, away from the lines that are fetched with its own.
struct alignas(2 * arch::kCacheLine) Word {
  std::atomic<std::uint64_t> value = 0;
};

/// Both threads of one look. Each goes on until it is done or time is up; then the look has come to nothing.
class Look {
 public:
  explicit Look(std::array<int, 2> cores) : cores_(cores) {}

  std::optional<Probe> run() {
    try {
      const std::jthread answering([this] { take_part(0); });
      const std::jthread asking([this] { take_part(1); });
    } catch (const std::system_error&) {
      return std::nullopt;  // No more threads for this user.
    }
    if (round_trips_.size() < kBatches || copies_.size() < kCopyBatches) return std::nullopt;
    const auto quarter = round_trips_.begin() + kBatches / 4;
    std::nth_element(round_trips_.begin(), quarter, round_trips_.end());
    return Probe{*quarter, *std::max_element(copies_.begin(), copies_.end())};
  }

 private:
  void take_part(std::size_t rank) {
    try {
      pin(cores_[rank]);
    } catch (const std::system_error&) {
      return;
    }
    rank == 0 ? answer() : ask();
  }

  /// Waits until `word` is at least `value`; false when time is up.
  [[nodiscard]] bool reaches(const Word& word, std::uint64_t value) const {
    constexpr int kLooks = 1000;
    for (int looks = 1; word.value.load(std::memory_order_acquire) < value; ++looks) {
      arch::pause();
      if (looks % kLooks != 0) continue;
      if (monotonic_ns() > deadline_) return false;
      ::sched_yield();
    }
    return true;
  }

  void answer() {
    for (std::uint64_t i = 1; i <= kBatches * kRoundTrips; ++i) {
      if (!reaches(asked_, i)) return;
      answered_.value.store(i, std::memory_order_release);
    }
    for (std::uint64_t i = 0; i < kCopyBatches * kCopies; ++i) {
      if (!reaches(written_, i + 1)) return;
      std::memcpy(in_.data(), piece(i), kPiece);
      read_.value.store(i + 1, std::memory_order_release);
    }
  }

  void ask() {
    // The other thread is there once it has answered; until then time has nothing to do with the cores.
    for (std::uint64_t i = 1; round_trips_.size() < kBatches; ++i) {
      const std::uint64_t start = monotonic_ns();
      for (const std::uint64_t last = i + kRoundTrips - 1;; ++i) {
        asked_.value.store(i, std::memory_order_release);
        if (!reaches(answered_, i)) return;
        if (i == last) break;
      }
      round_trips_.push_back(static_cast<double>(monotonic_ns() - start) / static_cast<double>(kRoundTrips));
    }
    for (std::uint64_t i = 0; copies_.size() < kCopyBatches;) {
      const std::uint64_t start = monotonic_ns();
      for (const std::uint64_t end = i + kCopies; i < end; ++i) {
        if (i >= kPieces && !reaches(read_, i - kPieces + 1)) return;
        std::memcpy(piece(i), out_.data(), kPiece);
        written_.value.store(i + 1, std::memory_order_release);
      }
      copies_.push_back(static_cast<double>(kCopies * kPiece) / static_cast<double>(monotonic_ns() - start));
    }
  }

  std::byte* piece(std::uint64_t number) { return buffer_.data() + number % kPieces * kPiece; }

  std::array<int, 2> cores_;
  std::uint64_t deadline_ = monotonic_ns() + kTimeoutNs;
  Word asked_;
  Word answered_;
  Word written_;
  Word read_;
  // Of the asking thread.
  std::vector<double> round_trips_{};
  std::vector<double> copies_{};
  alignas(4096) std::array<std::byte, kPieces * kPiece> buffer_{};
  std::array<std::byte, kPiece> out_{};
  std::array<std::byte, kPiece> in_{};
};

}  // namespace

Prober probe_between(std::array<int, 2> cores) {
  return [cores] { return std::make_unique<Look>(cores)->run(); };
}

}  // namespace wherry::bench
