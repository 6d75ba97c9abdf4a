// SPDX-License-Identifier: Apache-2.0
#include "file/client/held_locks.hpp"

#include <iterator>

namespace wherry::file {
namespace {

/// As the kernel counts: no file is longer.
constexpr std::uint64_t kLastByte = INT64_MAX;

std::uint64_t last_of(const layout::FileLock& lock) {
  return lock.length == 0 || lock.length > kLastByte - lock.offset ? kLastByte : lock.offset + lock.length - 1;
}

}  // namespace

void HeldLocks::set(const layout::FileLock& lock) {
  const std::uint64_t first = lock.offset;
  const std::uint64_t last = last_of(lock);
  const std::lock_guard guard(mutex_);
  auto next = lasts_.upper_bound(first);
  if (next != lasts_.begin() && std::prev(next)->second >= first) --next;
  while (next != lasts_.end() && next->first <= last) {
    const auto [start, end] = *next;
    next = lasts_.erase(next);
    if (start < first) lasts_.emplace(start, first - 1);
    if (end > last) lasts_.emplace(last + 1, end);
  }
  if (lock.type != static_cast<std::uint32_t>(layout::FileLockType::none)) lasts_.emplace(first, last);
}

bool HeldLocks::any() const {
  const std::lock_guard guard(mutex_);
  return !lasts_.empty();
}

bool HeldLocks::overlap(const layout::FileLock& range) const {
  const std::lock_guard guard(mutex_);
  const auto next = lasts_.upper_bound(last_of(range));
  return next != lasts_.begin() && std::prev(next)->second >= range.offset;
}

}  // namespace wherry::file
