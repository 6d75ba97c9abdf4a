// SPDX-License-Identifier: Apache-2.0
//
// The word of a descriptor that says whether its transfers may go past a mount.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace wherry::preload {

/// Pause after a file could not be opened or a transfer has failed. Doubled each time.
inline constexpr std::uint32_t kPauseMs = 200;
inline constexpr std::uint32_t kMostPauseMs = 60'000;
inline constexpr std::uint32_t kMostFailures = 10;  // failures that are counted; the last pause is kMostPauseMs

// Values of the lower half of a word; from kFirstSlot on it is a slot.
inline constexpr std::uint32_t kNew = 0;
inline constexpr std::uint32_t kNever = 1;
// kMount plus the number of failures. The upper half is when the file may be opened, in ms of the coarse clock.
inline constexpr std::uint32_t kMount = 2;
inline constexpr std::uint32_t kRing = 13;   // as kNew once the descriptor's ring has ended
inline constexpr std::uint32_t kSmall = 14;  // as kNew, of a file that is too small to connect for it alone
inline constexpr std::uint32_t kLarge = 15;  // as kNew, of a file that is not
inline constexpr std::uint32_t kFirstSlot = 16;

struct Word {
  std::uint64_t word = kNew;
  [[nodiscard]] std::uint32_t kind() const { return static_cast<std::uint32_t>(word); }
  [[nodiscard]] std::uint32_t time() const { return static_cast<std::uint32_t>(word >> 32); }
  [[nodiscard]] bool is_new() const { return kind() == kNew || (kind() >= kRing && kind() < kFirstSlot); }
  [[nodiscard]] bool waits() const { return kind() >= kMount && kind() <= kMount + kMostFailures; }
  [[nodiscard]] std::uint32_t failures() const { return waits() ? kind() - kMount : 0; }
  [[nodiscard]] int slot() const { return kind() < kFirstSlot ? -1 : static_cast<int>(kind() - kFirstSlot); }
  static std::uint64_t of(std::uint32_t kind, std::uint32_t time = 0) { return std::uint64_t{time} << 32 | kind; }
};

/// Time of the coarse clock in ms.
inline std::uint32_t now_ms() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint32_t>(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
}

inline bool is_over(std::uint32_t end_ms) { return static_cast<std::int32_t>(now_ms() - end_ms) >= 0; }

/// Returns the word of a descriptor after this many failures in a row.
inline std::uint64_t pause_after(std::uint32_t failures) {
  const std::uint32_t counted = std::min(failures, kMostFailures);
  return Word::of(kMount + counted, now_ms() + std::min(kPauseMs << (counted - 1), kMostPauseMs));
}

}  // namespace wherry::preload
