// SPDX-License-Identifier: Apache-2.0
#include "arch/barrier.hpp"

#include <ctime>

#include "base/found_once.hpp"

#if defined(__linux__) && __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#define WHERRY_MEMBARRIER 1
#else
#define WHERRY_MEMBARRIER 0
#endif

namespace wherry::arch {
namespace {

#if WHERRY_MEMBARRIER
long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

bool take_part() {
  constexpr long kNeeded = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  const long known = membarrier(MEMBARRIER_CMD_QUERY);
  return known >= 0 && (known & kNeeded) == kNeeded && membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool interrupt() { return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0; }
#else
bool take_part() { return false; }
bool interrupt() { return false; }
#endif

}  // namespace

bool takes_part_in_interrupts() noexcept {
  static constinit FoundOnce<bool> part;
  return part.get(take_part);
}

void interrupt_publishers() noexcept {
  publish_then_look();
  if (interrupt()) return;
  // The kernel has revoked the call: a sandbox was closed since. A store stays in its CPU's buffer for less than a
  // microsecond, and not beyond the next interrupt. So waiting a millisecond serves as a barrier.
  timespec left{.tv_sec = 0, .tv_nsec = 1'000'000};
  while (::nanosleep(&left, &left) != 0) {
  }
}

}  // namespace wherry::arch
