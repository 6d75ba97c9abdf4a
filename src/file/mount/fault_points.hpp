// SPDX-License-Identifier: Apache-2.0
// For tests: the points of a mount's daemon and supervisor at which a test can kill processes.
#pragma once

#include <atomic>

#include "file/wire/fault_point.hpp"

namespace wherry::file::mount {

/// Called at each point of this process; null except in tests. One variable for all objects, so that each point is one
/// load and one branch, and no constructor needs an argument for tests.
inline std::atomic<void (*)(FaultPoint)> at_fault_point{nullptr};

inline void pass(FaultPoint point) {
  if (auto* const at = at_fault_point.load(std::memory_order_relaxed); at != nullptr) at(point);
}

}  // namespace wherry::file::mount
