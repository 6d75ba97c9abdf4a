// SPDX-License-Identifier: Apache-2.0
// The registered memory of "inproc-net".
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <span>

namespace wherry::fabric::inproc {

/// Memory that "inproc-net" may send from and receive into. Thread-safe.
class NetMemory {
 public:
  /// Never destroyed: buffers in static objects may outlive main().
  static NetMemory& instance() {
    static NetMemory& memory = *new NetMemory;
    return memory;
  }

  void add(std::span<const std::byte> range) {
    const std::lock_guard lock(mutex_);
    ranges_.emplace(range.data(), range.data() + range.size());
  }
  /// Removes a range, which must have been added.
  void remove(std::span<const std::byte> range) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = ranges_.equal_range(range.data());
    const std::byte* const end = range.data() + range.size();
    ranges_.erase(std::find_if(first, last, [end](const auto& added) { return added.second == end; }));
  }
  [[nodiscard]] bool covers(std::span<const std::byte> range) {
    if (range.empty()) return true;
    const std::lock_guard lock(mutex_);
    const std::byte* const end = range.data() + range.size();
    // Searches from the nearest range, which usually is the one.
    return std::any_of(std::make_reverse_iterator(ranges_.upper_bound(range.data())), ranges_.rend(),
                       [end](const auto& added) { return added.second >= end; });
  }

 private:
  std::mutex mutex_;
  std::multimap<const std::byte*, const std::byte*> ranges_;  // first byte, end
};

}  // namespace wherry::fabric::inproc
