// SPDX-License-Identifier: Apache-2.0
// ROOT goes round for ever over some damaged files.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// While it lives, a file that has kept a thread busy for longer than `longest` ends the process as a crash does: the
/// supervisor finds its worker, and another process goes on. message: prints a line; from any thread.
class StuckWatch {
 public:
  StuckWatch(const State& state, std::chrono::seconds longest, std::function<void(const std::string&)> message);

 private:
  std::jthread thread_;
};

}  // namespace wherry::merge
