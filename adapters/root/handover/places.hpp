// SPDX-License-Identifier: Apache-2.0
// The parts of a lease that hold files which are not done. The worker uses it to find a free place. The server, which
// does not trust the worker, uses it to detect an overlap.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "adapters/root/layout/wire.hpp"

namespace wherry::root {

/// Returns the end of the place of a file that ends at `end`: `end` rounded up to a multiple of kRootPlace.
constexpr std::size_t end_of_place(std::size_t end) {
  return (end + layout::kRootPlace - 1) / layout::kRootPlace * layout::kRootPlace;
}

/// The places in use, by their beginning. Not thread-safe.
class Places {
 public:
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::size_t count() const { return ends_.size(); }
  /// Returns the end of the free range that starts at `begin`, at most `end`; `begin` if that byte is in use.
  [[nodiscard]] std::size_t free_until(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool is_free(std::size_t begin, std::size_t end) const { return free_until(begin, end) == end; }
  /// Returns the first free place of `bytes` that ends at or before `end`.
  [[nodiscard]] std::optional<std::size_t> first_fit(std::size_t bytes, std::size_t end) const;

  void take(std::size_t begin, std::size_t end) { ends_[begin] = end_of_place(end); }
  void free(std::size_t begin) { ends_.erase(begin); }

 private:
  std::map<std::size_t, std::size_t> ends_;  ///< beginning of a place -> its end
};

}  // namespace wherry::root
