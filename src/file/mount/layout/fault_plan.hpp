// SPDX-License-Identifier: Apache-2.0
// For tests: a file that a test and all processes of a mount have mapped. It names a fault point, and the processes
// that are killed when one of the mount's processes gets there:
//
//   +-----------------+----------------+
//   | FaultPlanHeader | FaultPassed x N |
//   +-----------------+----------------+
//
// tests/e2e/faults.py is the other side.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wherry::layout {

struct FaultPlanHeader {
  char point[24];                       // W: test, while the countdown is 0: name of the point
  std::atomic<std::int32_t> others[2];  // W: test: processes to kill first; 0: none
  std::atomic<std::int32_t> spares;     // W: test: 1: the process that gets there lives
  std::atomic<std::int32_t> countdown;  // W: both: kills when it becomes 0
};
static_assert(sizeof(FaultPlanHeader) == 40 && offsetof(FaultPlanHeader, others) == 24);
static_assert(offsetof(FaultPlanHeader, spares) == 32 && offsetof(FaultPlanHeader, countdown) == 36);
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

struct FaultPassed {
  char point[24];                   // W: the mount: name of a point
  std::atomic<std::int32_t> times;  // W: the mount: how often it was passed
  std::atomic<std::int32_t> reserved;
};
static_assert(sizeof(FaultPassed) == 32 && offsetof(FaultPassed, times) == 24);

}  // namespace wherry::layout
