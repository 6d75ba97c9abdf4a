// SPDX-License-Identifier: Apache-2.0
#include "processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace wherry::mpi {
namespace {

/// Processors that a process may run on; 0 is this process. The kernel requires no permission to ask for another's.
std::size_t processors_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(process, sizeof(set), &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace

std::size_t job_processors() { return std::max(processors_of(0), processors_of(getppid())); }

}  // namespace wherry::mpi
