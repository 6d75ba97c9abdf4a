// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace wherry {

/// Returns nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share and which is never set back.
inline std::uint64_t monotonic_ns() {
  using std::chrono::steady_clock;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

/// Returns the time point `duration` from now, or the clock's maximum if that overflows.
inline std::chrono::steady_clock::time_point time_after(std::chrono::nanoseconds duration) {
  using std::chrono::steady_clock;
  const auto now = steady_clock::now();
  return duration >= steady_clock::time_point::max() - now ? steady_clock::time_point::max() : now + duration;
}

}  // namespace wherry
