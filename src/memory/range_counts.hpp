// SPDX-License-Identifier: Apache-2.0
// Counts the uses of ranges of numbers. May include: nothing of ours.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace wherry::memory {

class RangeCounts {
 public:
  struct Range {
    std::uint64_t start;
    std::uint64_t end;
  };

  /// Adds one use of [start, end).
  void add(std::uint64_t start, std::uint64_t end);
  /// Removes one use that add() has added. Parts without a use are idle until they are used again or forgotten.
  void remove(std::uint64_t start, std::uint64_t end);
  /// Marks these parts as never idle from now on.
  void keep(std::uint64_t start, std::uint64_t end);
  /// Removes these parts: they are neither in use nor idle, until they are added again.
  void forget(std::uint64_t start, std::uint64_t end);

  /// Whether each part of the range has a use.
  [[nodiscard]] bool in_use(std::uint64_t start, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t idle_bytes() const { return idle_bytes_; }
  [[nodiscard]] std::vector<Range> idle() const;

 private:
  struct Part {
    std::uint64_t end;
    std::uint64_t uses;
    bool kept;
    [[nodiscard]] bool idle() const { return uses == 0 && !kept; }
  };
  using Parts = std::map<std::uint64_t, Part>;

  /// Splits the part that contains `at`, so that a part begins there.
  void split(std::uint64_t at);
  template <class Change>
  void change(std::uint64_t start, std::uint64_t end, Change&& change);

  Parts parts_;
  std::uint64_t idle_bytes_ = 0;
};

}  // namespace wherry::memory
