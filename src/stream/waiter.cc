// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <sched.h>

#include "base/config.hpp"

namespace wherry::stream {
namespace {

bool has_one_core() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1;
}

}  // namespace

SpinBudget::SpinBudget() : budget_(config::number(config::Key::spin)) {
  // With one core the peer cannot run while this side looks.
  if (has_one_core()) budget_ = {};
}

}  // namespace wherry::stream
