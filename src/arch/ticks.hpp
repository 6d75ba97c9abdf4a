// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if !defined(__x86_64__) && !defined(__i386__)
#include <chrono>
#endif

namespace wherry::arch {

/// A counter that grows by one to five each nanosecond. It tells "a moment ago" from "long ago" at a third of the cost
/// of the clock. The counters of two CPUs may differ.
inline std::uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace wherry::arch
