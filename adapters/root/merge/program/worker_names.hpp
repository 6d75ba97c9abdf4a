// SPDX-License-Identifier: Apache-2.0
// Names a worker for the user: by its process, and by its command line, which distinguishes it from others of its job.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Returns the printable command line of a process, cut off with "..." if it is too long. Empty if it cannot be read.
std::array<char, kCommand> command_of(pid_t process);

/// Returns, for example, "process 4711 (root_events wherry://0:1095//out.root 2 5000)".
std::string describe(const WorkerEntry& worker);

}  // namespace wherry::merge
