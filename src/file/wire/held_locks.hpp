// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// The ranges on which one owner has locks, as its kernel counts them. Any thread.
class HeldLocks {
 public:
  /// What a lock that was granted, or given up, has changed.
  void set(const layout::FileLock& lock);
  [[nodiscard]] bool any() const;
  /// Whether some of the range is locked.
  [[nodiscard]] bool overlap(const layout::FileLock& range) const;
  /// Whether some of the range has a stronger lock than this one, so that others may get theirs when it is granted.
  [[nodiscard]] bool weakened_by(const layout::FileLock& lock) const;
  [[nodiscard]] std::size_t count() const;
  /// No fewer than `count` after `set`.
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
  Ranges ranges_;  ///< by first byte; none overlap, and neighbours differ in type
};

}  // namespace wherry::file
