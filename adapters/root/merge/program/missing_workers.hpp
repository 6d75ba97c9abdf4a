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

/// A worker looks for another server when it writes next, and may compute for an hour before: it is waited for as long
/// as its process lives. A process that cannot be seen from here is given up after kUnseenTimeout, and no longer counts
/// as lost if it comes after all.
class MissingWorkers {
 public:
  static constexpr std::chrono::seconds kUnseenTimeout{20};

  explicit MissingWorkers(State& state);

  /// Counts workers that will not come any more as lost. Returns how many these are.
  std::size_t give_up();
  /// Workers that have not come back, as far as `give_up` has seen.
  [[nodiscard]] std::size_t size() const { return missing_.size(); }
  [[nodiscard]] std::set<pid_t> processes() const;
  [[nodiscard]] bool is_late() const { return Clock::now() >= begin_ + kUnseenTimeout; }

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
