// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <sched.h>

#include <cerrno>

#include "directories.hpp"
#include "signals_blocked.hpp"
#include "vfork.hpp"

namespace wherry::preload {

constinit std::atomic<file::Cache*> detail::ready{nullptr};

namespace {

enum class Phase : unsigned char { never_tried, trying, attached, refused, inherited };

constinit file::Cache the_cache;
constinit std::atomic<Phase> phase{Phase::never_tried};
constinit std::atomic<std::uint64_t> forked{0};
// The calls that attaching makes pass the hooks, too.
constinit thread_local bool attaching = false;

/// One thread attaches the cache. Its signal handlers are blocked meanwhile: one might wait for the attaching to end.
void attach(Phase before) {
  const SignalsBlocked blocked;
  if (!phase.compare_exchange_strong(before, Phase::trying, std::memory_order_relaxed)) return;
  attaching = true;
  // A refusal may concern fills alone.
  (void)(before == Phase::inherited ? the_cache.after_fork() : the_cache.attach());
  attaching = false;
  const bool attached = the_cache.attached();
  // READY release: what attaching has stored
  if (attached) detail::ready.store(&the_cache, std::memory_order_release);
  // PHASE release: whether there is a cache
  phase.store(attached ? Phase::attached : Phase::refused, std::memory_order_release);
}

}  // namespace

file::Cache* attach_cache() noexcept {
  if (!any_directories() || attaching || in_vfork_child()) return nullptr;
  const int error = errno;
  while (true) {
    const Phase now = phase.load(std::memory_order_acquire);  // PHASE acquire: whether there is a cache
    if (now == Phase::attached || now == Phase::refused) break;
    if (now == Phase::trying) {
      sched_yield();
    } else {
      attach(now);
    }
  }
  errno = error;
  return cache_if_ready();
}

std::uint64_t forks() noexcept { return forked.load(std::memory_order_relaxed); }

void repair_store_after_fork() noexcept {
  forked.fetch_add(1, std::memory_order_relaxed);
  if (phase.load(std::memory_order_relaxed) == Phase::attached) {
    detail::ready.store(nullptr, std::memory_order_relaxed);
    phase.store(Phase::inherited, std::memory_order_relaxed);
  } else if (phase.load(std::memory_order_relaxed) == Phase::trying) {
    // A thread of the parent's was attaching at the fork, and left an unknown state.
    phase.store(Phase::refused, std::memory_order_relaxed);
  }
}

}  // namespace wherry::preload
