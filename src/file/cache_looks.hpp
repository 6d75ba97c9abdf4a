// SPDX-License-Identifier: Apache-2.0
// What a reader keeps of a file between two looks at its stamp: the file's place in the cache, and when to look again.
#pragma once

#include <time.h>

#include <cstdint>

#include "file/cache.hpp"

namespace wherry::file {

/// A File in one word, so that it is read whole; all ones: none.
inline constexpr std::uint64_t kNoFile = ~std::uint64_t{0};
inline constexpr unsigned kBornBits = 48;

inline std::uint64_t packed(const File& file) {
  if (file.none() || file.slot >= UINT16_MAX || file.born >> kBornBits != 0) return kNoFile;
  return std::uint64_t{file.slot} << kBornBits | file.born;
}

inline File unpacked(std::uint64_t word) {
  if (word == kNoFile) return {};
  return {.slot = static_cast<std::uint32_t>(word >> kBornBits), .born = word & ((std::uint64_t{1} << kBornBits) - 1)};
}

/// Nanoseconds of a clock that costs no system call and is up to 10 ms late.
inline std::uint64_t coarse_clock() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// How long what a look found counts. With the lateness of the clock 100 ms.
constexpr std::uint64_t counts_for(Validity validity) {
  return validity == Validity::unsettled ? kSettledAfter : 90'000'000;
}

}  // namespace wherry::file
