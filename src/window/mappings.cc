// SPDX-License-Identifier: Apache-2.0
#include "window/mappings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "base/fork_generation.hpp"

namespace wherry::window {
namespace {

struct OfProcess {
  std::uint64_t generation = fork_generation();
  Mappings mappings;
};

std::atomic<OfProcess*> current{nullptr};

}  // namespace

// Never destroyed: a mapping may be unmapped after main(), and a child cannot destroy its parent's.
Mappings& Mappings::instance() {
  OfProcess* known = current.load(std::memory_order_acquire);  // MAPPINGS
  while (known == nullptr || known->generation != fork_generation()) {
    auto fresh = std::make_unique<OfProcess>();
    // MAPPINGS: publishes the new object, unless another thread was first.
    if (current.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) known = fresh.release();
  }
  return known->mappings;
}

int Mappings::map(std::span<std::byte> where, std::shared_ptr<MappingReferences> marks, const Entry& entry,
                  const std::function<int()>& map) {
  const auto start = reinterpret_cast<std::uintptr_t>(where.data());
  const std::lock_guard lock(mutex_);
  if (const int error = map(); error != 0) {
    marks->remove(entry);
    return error;
  }
  forget(start, start + where.size());
  mappings_[start] = {.end = start + where.size(), .marks = std::move(marks), .entry = entry};
  return 0;
}

int Mappings::unmap(void* start, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const std::lock_guard lock(mutex_);
  const int result = ::munmap(start, bytes);
  if (result == 0) forget(first, first + (bytes + page - 1) / page * page);
  return result;
}

void Mappings::forget(std::uintptr_t start, std::uintptr_t end) {
  auto next = mappings_.lower_bound(start);
  if (next != mappings_.begin() && std::prev(next)->second.end > start) --next;
  while (next != mappings_.end() && next->first < end) {
    const auto [from, mapping] = *next;
    next = mappings_.erase(next);
    keep_part(from, std::min(mapping.end, start), mapping);
    keep_part(std::max(from, end), mapping.end, mapping);
    mapping.marks->remove(mapping.entry);
  }
}

void Mappings::keep_part(std::uintptr_t start, std::uintptr_t end, const Mapping& of) {
  if (start >= end) return;
  of.marks->add(of.entry);
  mappings_[start] = {.end = end, .marks = of.marks, .entry = of.entry};
}

}  // namespace wherry::window
