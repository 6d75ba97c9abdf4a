// SPDX-License-Identifier: Apache-2.0
// Copies into and out of memory that another core reads or has written: rings, windows, slots. The fastest instructions
// depend on the processor, and are chosen once per process. Any size and alignment; no byte beyond either end is
// touched. Source and destination must not overlap. A release store after the copy publishes the bytes like any others.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "arch/copy.hpp"

namespace wherry::arch {

using CopyFunction = void (*)(void* destination, const void* source, std::size_t bytes);

/// A pair of kernels, one for each direction.
struct SharedCopy {
  const char* name;   ///< as WHERRY_COPY names it
  CopyFunction into;  ///< writes lines that another core has read
  CopyFunction out;   ///< reads lines that another core has written
};

/// Returns the pairs that this CPU can run. The first is the C library's memcpy both ways, and the only one except on
/// x86-64. For tests and measurements.
std::span<const SharedCopy> shared_copies();

/// Returns the pair in use: WHERRY_COPY at the first use. A value that is invalid (`wherry config` reports it), or that
/// this CPU cannot run, counts as `auto`.
const SharedCopy& shared_copy() noexcept;

/// The properties that the choice depends on.
struct Processor {
  bool amd = false;
  unsigned family = 0;  ///< from CPUID, on x86-64
  bool avx2 = false;
};
Processor this_processor() noexcept;

/// Returns the name of the pair that `auto` selects on that processor.
std::string_view best_shared_copy(const Processor& processor) noexcept;

/// Shorter copies are left to the compiler: no kernel is faster there, and a call would cost more than the copy.
inline constexpr std::size_t kSmallestShared = 256;

namespace detail {
/// Initially functions that choose a kernel and then copy.
extern std::atomic<CopyFunction> copy_into_shared;
extern std::atomic<CopyFunction> copy_out_of_shared;
}  // namespace detail

/// Copies through the caches into memory that another core reads.
inline void copy_into_shared(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) [[likely]]
    return copy_cached(destination, source, bytes);
  detail::copy_into_shared.load(std::memory_order_relaxed)(destination, source, bytes);
}

/// Copies through the caches out of memory that another core has written.
inline void copy_out_of_shared(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) [[likely]]
    return copy_cached(destination, source, bytes);
  detail::copy_out_of_shared.load(std::memory_order_relaxed)(destination, source, bytes);
}

}  // namespace wherry::arch
