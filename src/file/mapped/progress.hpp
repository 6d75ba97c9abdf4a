// SPDX-License-Identifier: Apache-2.0
//
// The position of an open file's reader, and how its reads are made, in one word.
#pragma once

#include <atomic>
#include <cstdint>

#include "file/mapped/read_policy.hpp"

namespace wherry::file::mapped {

struct Progress {
  static constexpr unsigned kWayBits = 2;
  static constexpr unsigned kSkippedBits = 5;
  static constexpr unsigned kMostSkipped = (1U << kSkippedBits) - 1;
  static constexpr unsigned kEndShift = kWayBits + 1 + kSkippedBits;
  static constexpr std::uint64_t kWayMask = (1U << kWayBits) - 1;
  using Way = ReadPolicy::Way;

  ReadPolicy policy;
  bool refused = false;  ///< the last attempt to map the file failed
  unsigned skipped = 0;  ///< reads since the mapping was lost

  static Progress of(std::uint64_t word) {
    const auto take = [&](unsigned bits) {
      const std::uint64_t low = word & ((1U << bits) - 1);
      word >>= bits;
      return low;
    };
    Progress progress;
    progress.policy.way = static_cast<Way>(take(kWayBits));
    progress.refused = take(1) != 0;
    progress.skipped = static_cast<unsigned>(take(kSkippedBits));
    progress.policy.end = word;
    return progress;
  }
  /// Whether a read continues where the last one ended, in the same stretch, and the last one was made this way. Then
  /// the policy need not be asked, and the read is recorded. Most reads continue, so this does not decode the word.
  static bool try_continue(std::atomic<std::uint64_t>& progress, Way way, std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t word = progress.load(std::memory_order_relaxed);
    if ((word & kWayMask) != static_cast<std::uint64_t>(way) || word >> kEndShift != offset ||
        ((offset + bytes - 1) ^ (offset - 1)) >= stretch_of(bytes)) {
      return false;
    }
    progress.store(word + (bytes << kEndShift), std::memory_order_relaxed);
    return true;
  }
  [[nodiscard]] std::uint64_t word() const {
    std::uint64_t word = policy.end << kSkippedBits | skipped;
    word = word << 1 | static_cast<std::uint64_t>(refused);
    return word << kWayBits | static_cast<std::uint64_t>(policy.way);
  }
};

}  // namespace wherry::file::mapped
