// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// The ranges on which one owner holds locks, merged and split as the kernel does. Thread-safe.
class HeldLocks {
 public:
  /// Records a lock that was granted or given up.
  void set(const layout::FileLock& lock);
  [[nodiscard]] bool any() const;
  /// Whether any part of the range is locked.
  [[nodiscard]] bool overlap(const layout::FileLock& range) const;
  /// Whether another owner could not have this lock.
  [[nodiscard]] bool conflicts_with(const layout::FileLock& lock) const;
  /// Whether any part of the range has a stronger lock than `lock`, so that other owners may get theirs once it is
  /// granted.
  [[nodiscard]] bool weakened_by(const layout::FileLock& lock) const;
  [[nodiscard]] std::size_t count() const;
  /// An upper bound of `count()` after `set(lock)`.
  [[nodiscard]] std::size_t count_with(const layout::FileLock& lock) const;
  [[nodiscard]] std::vector<layout::FileLock> all() const;

 private:
  struct Range {
    std::uint64_t last;
    std::uint32_t type;
  };
  using Ranges = std::map<std::uint64_t, Range>;
  [[nodiscard]] Ranges::const_iterator from(std::uint64_t byte) const;

  mutable std::mutex mutex_;
  Ranges ranges_;  ///< by first byte; ranges do not overlap, and adjacent ranges differ in type
};

}  // namespace wherry::file
