// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace wherry {

/// Nanoseconds of the machine's monotonic clock: the same clock in all processes of a machine, never set back.
inline std::uint64_t monotonic_ns() {
  using std::chrono::steady_clock;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

}  // namespace wherry
