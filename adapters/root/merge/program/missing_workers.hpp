// SPDX-License-Identifier: Apache-2.0
// Workers that were connected to a merging process that died, seen by the one after it.
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <vector>

#include "adapters/root/merge/program/state.hpp"
#include "base/unique_fd.hpp"

namespace wherry::merge {

/// Whoever looks for another server does so when he writes next, and may compute for an hour before: as long as his
/// process lives he is waited for. Only of a process that cannot be seen from here nothing is known: it is given up
/// after a while, and no longer counts as lost if it comes after all.
class MissingWorkers {
 public:
  static constexpr std::chrono::seconds kPatience{20};

  explicit MissingWorkers(State& state);

  /// Counts who will not come any more as lost. Returns how many these are.
  std::size_t give_up();
  /// Workers that have not come back, as far as `give_up` has seen.
  [[nodiscard]] std::size_t size() const { return missing_.size(); }
  [[nodiscard]] std::set<pid_t> processes() const;
  [[nodiscard]] bool is_late() const { return Clock::now() >= begin_ + kPatience; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Missing {
    WorkerEntry worker;
    bool dead = false;
    UniqueFd process{};  ///< readable when it has ended
  };
  [[nodiscard]] bool is_hopeless(const Missing& missing) const;

  State& state_;
  std::vector<Missing> missing_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace wherry::merge
