// SPDX-License-Identifier: Apache-2.0
//
// This process's part in the card's cache.
#pragma once

#include <atomic>
#include <cstdint>

#include "file/cache.hpp"

namespace wherry::preload {

namespace detail {
extern constinit std::atomic<file::Cache*> ready;
}

/// The cache; attached by the first call that needs it. Null: there is none, or a child of vfork asks for it first.
/// Keeps errno.
file::Cache* attach_cache() noexcept;

/// The same without the first attachment: null until then, and in a forked child.
inline file::Cache* cache_if_ready() noexcept {
  // READY acquire: the cache is attached, or the child's is its own
  return detail::ready.load(std::memory_order_acquire);
}

inline file::Cache* cache() noexcept {
  file::Cache* const store = cache_if_ready();
  return store != nullptr ? store : attach_cache();
}

/// Counts the forks that led to this process: what was reserved before the last one is the parent's.
std::uint64_t forks() noexcept;

/// In a forked child. The cache is attached again when it is needed.
void repair_store_after_fork() noexcept;

}  // namespace wherry::preload
