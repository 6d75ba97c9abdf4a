// SPDX-License-Identifier: Apache-2.0
// The parts of a lease with files that are not done. The worker looks here for a free place, and the server, which does
// not trust it, for an overlap.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "adapters/root/layout/wire.hpp"

namespace wherry::root {

/// The end of the place of a file that ends there: places are multiples of kRootPlace.
constexpr std::size_t end_of_place(std::size_t end) {
  return (end + layout::kRootPlace - 1) / layout::kRootPlace * layout::kRootPlace;
}

class Places {
 public:
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::size_t count() const { return ends_.size(); }
  /// Returns the end of what is free from `begin` on, at most `end`.
  [[nodiscard]] std::size_t free_until(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool is_free(std::size_t begin, std::size_t end) const { return free_until(begin, end) == end; }
  /// Returns the first free place for so many bytes that ends by `end`.
  [[nodiscard]] std::optional<std::size_t> first_fit(std::size_t bytes, std::size_t end) const;

  void take(std::size_t begin, std::size_t end) { ends_[begin] = end_of_place(end); }
  void free(std::size_t begin) { ends_.erase(begin); }

 private:
  std::map<std::size_t, std::size_t> ends_;  ///< by where they begin
};

}  // namespace wherry::root
