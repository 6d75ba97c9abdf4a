// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <sched.h>

#include "base/config.hpp"

namespace wherry::stream {
namespace {

constexpr std::uint64_t kMaxSpinMicroseconds = 1'000'000;

bool has_one_core() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1;
}

}  // namespace

SpinBudget::SpinBudget() : budget_(config::number(config::Key::spin, 0, kMaxSpinMicroseconds)) {
  // With one core the peer cannot run while this side looks.
  if (has_one_core()) budget_ = {};
}

}  // namespace wherry::stream
