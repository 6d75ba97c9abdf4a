// SPDX-License-Identifier: Apache-2.0
#include "base/fork_generation.hpp"

#include <pthread.h>

#include <atomic>

#include "base/found_once.hpp"
#include "base/wiped_on_fork.hpp"

namespace wherry {
namespace {

/// The highest number given to this process or an ancestor: a child inherits it.
std::atomic<std::uint64_t> highest{0};

/// Used if the kernel cannot wipe pages on fork.
std::atomic<std::uint64_t> wiped_by_handler{0};

/// Returns the word that holds this process's number; 0 until it has one.
std::atomic<std::uint64_t>* make_own() noexcept {
  if (auto* word = make_word_wiped_on_fork(); word != nullptr) return word;
  ::pthread_atfork(nullptr, nullptr, [] { wiped_by_handler.store(0, std::memory_order_relaxed); });
  return &wiped_by_handler;
}

}  // namespace

std::uint64_t fork_generation() noexcept {
  static constinit FoundOnce<std::atomic<std::uint64_t>*> place;
  std::atomic<std::uint64_t>& own = *place.get(make_own);
  std::uint64_t number = own.load(std::memory_order_relaxed);
  if (number != 0) return number;
  // Counted before it is stored: a child that another thread forks in between gets a higher number.
  const std::uint64_t fresh = highest.fetch_add(1, std::memory_order_relaxed) + 1;
  return own.compare_exchange_strong(number, fresh, std::memory_order_relaxed) ? fresh : number;
}

}  // namespace wherry
