// SPDX-License-Identifier: Apache-2.0
// Copies into and out of memory that another core reads or has written: rings, windows, slots. Which instructions are
// the fastest there depends on the make of processor, and is chosen once per process. Source and destination must not
// overlap. Any sizes and alignments; nothing beyond either end is touched. A release store after the copy publishes the
// bytes like any others.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "arch/copy.hpp"

namespace wherry::arch {

using CopyFunction = void (*)(void* destination, const void* source, std::size_t bytes);

/// A kernel for each direction.
struct SharedCopy {
  const char* name;   ///< as WHERRY_COPY names it
  CopyFunction into;  ///< writes lines that another core has read
  CopyFunction out;   ///< reads lines that another core has written
};

/// Those that this CPU can run; the first is the C library's memcpy both ways, and the only one but on x86. For tests
/// and measurements.
std::span<const SharedCopy> shared_copies();

/// The one in use: WHERRY_COPY as it was at the first use. What is not valid (`wherry config` says so) or needs
/// instructions that this CPU has not counts as `auto`.
const SharedCopy& shared_copy() noexcept;

/// What the choice depends on.
struct Processor {
  bool amd = false;
  unsigned family = 0;  ///< as CPUID tells it, on x86
  bool avx2 = false;
};
Processor this_processor() noexcept;

/// The name of what `auto` stands for on that processor.
std::string_view best_shared_copy(const Processor& processor) noexcept;

/// Shorter copies are the compiler's: no kernel is faster there, and a call would cost more than the copy.
inline constexpr std::size_t kSmallestShared = 256;

namespace detail {
/// At first functions that choose, and then copy.
extern std::atomic<CopyFunction> copy_into_shared;
extern std::atomic<CopyFunction> copy_out_of_shared;
}  // namespace detail

/// Through the caches, into memory that another core reads.
inline void copy_into_shared(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) [[likely]]
    return copy_cached(destination, source, bytes);
  detail::copy_into_shared.load(std::memory_order_relaxed)(destination, source, bytes);
}

/// Through the caches, out of memory that another core has written.
inline void copy_out_of_shared(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSmallestShared) [[likely]]
    return copy_cached(destination, source, bytes);
  detail::copy_out_of_shared.load(std::memory_order_relaxed)(destination, source, bytes);
}

}  // namespace wherry::arch
