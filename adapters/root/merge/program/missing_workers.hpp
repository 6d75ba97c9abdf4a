// SPDX-License-Identifier: Apache-2.0
// Tracks the workers that were connected to a merging process that died. Used by its successor.
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <vector>

#include "adapters/root/merge/program/state.hpp"
#include "base/unique_fd.hpp"

namespace wherry::merge {

/// A worker that may reconnect is waited for as long as its process lives: it looks for another server only when it
/// writes next, and may compute for an hour before. A worker whose process is not visible here is given up after
/// kUnseenTimeout. If it connects later, it no longer counts as lost.
class MissingWorkers {
 public:
  static constexpr std::chrono::seconds kUnseenTimeout{20};

  explicit MissingWorkers(State& state);

  /// Counts workers that cannot come back as lost. Returns their number.
  std::size_t give_up();
  /// Returns how many workers had not come back at the last call of `give_up`.
  [[nodiscard]] std::size_t size() const { return missing_.size(); }
  [[nodiscard]] std::set<pid_t> processes() const;
  [[nodiscard]] bool is_late() const { return Clock::now() >= begin_ + kUnseenTimeout; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Missing {
    WorkerEntry worker;
    bool dead = false;
    UniqueFd process{};  ///< a pidfd, readable when the process has ended
  };
  [[nodiscard]] bool is_hopeless(const Missing& missing) const;

  State& state_;
  std::vector<Missing> missing_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace wherry::merge
