// SPDX-License-Identifier: Apache-2.0
#include "file/wire/held_locks.hpp"

#include <algorithm>
#include <iterator>

namespace wherry::file {
namespace {

/// The kernel's limit: no file is longer.
constexpr std::uint64_t kLastByte = INT64_MAX;
constexpr auto kNone = static_cast<std::uint32_t>(layout::FileLockType::none);

std::uint64_t last_of(const layout::FileLock& lock) {
  return lock.length == 0 || lock.length > kLastByte - lock.offset ? kLastByte : lock.offset + lock.length - 1;
}

}  // namespace

/// The first range that ends at `byte` or later.
HeldLocks::Ranges::const_iterator HeldLocks::from(std::uint64_t byte) const {
  const auto next = ranges_.upper_bound(byte);
  return next != ranges_.begin() && std::prev(next)->second.last >= byte ? std::prev(next) : next;
}

void HeldLocks::set(const layout::FileLock& lock) {
  std::uint64_t first = lock.offset;
  std::uint64_t last = last_of(lock);
  const std::lock_guard guard(mutex_);
  // Adjacent ranges of the same type are merged.
  auto next = from(first == 0 ? 0 : first - 1);
  while (next != ranges_.end() && (next->first <= last || next->first - 1 == last)) {
    const auto [start, range] = *next;
    if (range.type != lock.type && (range.last < first || start > last)) {
      ++next;
      continue;
    }
    next = ranges_.erase(next);
    if (range.type == lock.type) {
      first = std::min(first, start);
      last = std::max(last, range.last);
      continue;
    }
    if (start < first) ranges_.emplace(start, Range{first - 1, range.type});
    if (range.last > last) ranges_.emplace(last + 1, range);
  }
  if (lock.type != kNone) ranges_.emplace(first, Range{last, lock.type});
}

bool HeldLocks::any() const {
  const std::lock_guard guard(mutex_);
  return !ranges_.empty();
}

bool HeldLocks::overlap(const layout::FileLock& range) const {
  const std::lock_guard guard(mutex_);
  const auto next = from(range.offset);
  return next != ranges_.end() && next->first <= last_of(range);
}

bool HeldLocks::weakened_by(const layout::FileLock& lock) const {
  const std::uint64_t last = last_of(lock);
  const std::lock_guard guard(mutex_);
  for (auto next = from(lock.offset); next != ranges_.end() && next->first <= last; ++next) {
    if (next->second.type > lock.type) return true;
  }
  return false;
}

bool HeldLocks::conflicts_with(const layout::FileLock& lock) const {
  constexpr auto kWrite = static_cast<std::uint32_t>(layout::FileLockType::write);
  const std::uint64_t last = last_of(lock);
  const std::lock_guard guard(mutex_);
  for (auto next = from(lock.offset); next != ranges_.end() && next->first <= last; ++next) {
    if (lock.type == kWrite || next->second.type == kWrite) return true;
  }
  return false;
}

std::size_t HeldLocks::count_with(const layout::FileLock& lock) const {
  const std::uint64_t last = last_of(lock);
  const std::lock_guard guard(mutex_);
  std::size_t count = ranges_.size() + (lock.type == kNone ? 0 : 1);
  for (auto next = from(lock.offset); next != ranges_.end() && next->first <= last; ++next) {
    --count;
    if (next->first < lock.offset) ++count;
    if (next->second.last > last) ++count;
  }
  return count;
}

std::size_t HeldLocks::count() const {
  const std::lock_guard guard(mutex_);
  return ranges_.size();
}

std::vector<layout::FileLock> HeldLocks::all() const {
  std::vector<layout::FileLock> found;
  const std::lock_guard guard(mutex_);
  for (const auto& [start, range] : ranges_) {
    const std::uint64_t length = range.last == kLastByte ? 0 : range.last - start + 1;
    found.push_back({.offset = start, .length = length, .type = range.type, .reserved = 0});
  }
  return found;
}

}  // namespace wherry::file
