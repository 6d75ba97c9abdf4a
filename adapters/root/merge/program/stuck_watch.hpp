// SPDX-License-Identifier: Apache-2.0
// Ends a merging process in which ROOT loops forever over a damaged file.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// While one exists, a file that keeps a thread busy for longer than `longest` aborts the process. As after a crash,
/// the supervisor finds the file's worker, and another process continues.
class StuckWatch {
 public:
  /// @param message  prints a line; called by the watching thread
  StuckWatch(const State& state, std::chrono::seconds longest, std::function<void(const std::string&)> message);

 private:
  std::jthread thread_;
};

}  // namespace wherry::merge
