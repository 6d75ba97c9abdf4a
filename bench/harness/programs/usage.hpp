// SPDX-License-Identifier: Apache-2.0
//
// What processes of others have used, seen from outside: a program in any language is counted in the same way.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace wherry::bench {

/// CPU seconds, user and system, of these processes with all their threads. Those that have ended count as nothing.
double cpu_seconds_of(std::span<const pid_t> processes);

/// Context switches of all threads that these processes have now.
std::uint64_t context_switches_of(std::span<const pid_t> processes);

/// Proportional set size in bytes.
std::uint64_t memory_of(std::span<const pid_t> processes);

}  // namespace wherry::bench
