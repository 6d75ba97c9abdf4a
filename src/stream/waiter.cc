// SPDX-License-Identifier: Apache-2.0
#include "stream/waiter.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/config.hpp"

namespace wherry::stream {
namespace {

/// Of the machine, not of this process: who is pinned to one core may have its peer on another.
bool has_one_core() { return ::sysconf(_SC_NPROCESSORS_ONLN) == 1; }

}  // namespace

SpinBudget::SpinBudget() : budget_(config::number(config::Key::spin)) {
  // With one core the peer cannot run while this side looks.
  if (has_one_core()) budget_ = {};
}

fabric::Deadline deadline_of(const Timeout& timeout) {
  if (!timeout) return {};
  const auto now = SteadyClock::now();
  if (*timeout >= SteadyClock::time_point::max() - now) return {};  // for ever, as good as
  return now + std::max(*timeout, Timeout::value_type::zero());
}

}  // namespace wherry::stream
