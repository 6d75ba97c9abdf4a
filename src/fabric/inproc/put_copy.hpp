// SPDX-License-Identifier: Apache-2.0
// The copy of a put inside a process. May include: arch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include "arch/barrier.hpp"

namespace wherry::fabric::inproc {

/// Writes the bytes of a put. As on a network, the receiver may read words of them at the same time: an entry of a
/// table is valid only if its sequence is the same before and after. ThreadSanitizer has to see atomic stores for that;
/// such entries are short.
inline void copy_put(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kMostOfAnEntry = 64;
  if (WHERRY_THREAD_SANITIZER == 0 || bytes > kMostOfAnEntry) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i) {
    std::atomic_ref<std::byte>(to[i]).store(from[i], std::memory_order_relaxed);
  }
}

}  // namespace wherry::fabric::inproc
