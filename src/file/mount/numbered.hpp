// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace wherry::file::mount {

/// Open files or directories, by the numbers that the kernel was given. Thread-safe. Never blocks.
template <class T>
class Numbered {
 public:
  void add(std::uint64_t number, std::shared_ptr<T> open) {
    const std::unique_lock lock(mutex_);
    open_.insert_or_assign(number, std::move(open));
  }
  /// Null: it is closed. Valid until `remove`.
  [[nodiscard]] T* find(std::uint64_t number) const {
    const std::shared_lock lock(mutex_);
    const auto found = open_.find(number);
    return found == open_.end() ? nullptr : found->second.get();
  }
  /// Returns it, or null.
  std::shared_ptr<T> remove(std::uint64_t number) {
    const std::unique_lock lock(mutex_);
    auto found = open_.extract(number);
    return found.empty() ? nullptr : std::move(found.mapped());
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<T>> open_;
};

}  // namespace wherry::file::mount
