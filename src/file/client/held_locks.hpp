// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// The ranges on which one owner has locks. Any thread.
class HeldLocks {
 public:
  /// What a lock that was granted, or given up, has changed.
  void set(const layout::FileLock& lock);
  [[nodiscard]] bool any() const;
  /// Whether some of the range is locked.
  [[nodiscard]] bool overlap(const layout::FileLock& range) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> lasts_;  ///< by first byte; none overlap
};

}  // namespace wherry::file
