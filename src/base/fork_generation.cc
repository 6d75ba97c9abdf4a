// SPDX-License-Identifier: Apache-2.0
#include "base/fork_generation.hpp"

#include <pthread.h>

#include <atomic>

namespace wherry {
namespace {

std::atomic<std::uint64_t> generation{0};

void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint64_t fork_generation() noexcept {
  [[maybe_unused]] static const int counted = ::pthread_atfork(nullptr, nullptr, count_fork);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace wherry
