// SPDX-License-Identifier: Apache-2.0
// How a worker is named to the user: by its process, and by the command line that tells it from the others of its job.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// The command line of a process, of which what is not printable ASCII is shown as '?'; empty if it cannot be seen.
std::array<char, kCommand> command_of(pid_t process);

/// "process 4711 (root_events wherry://0:1095//out.root 2 5000)".
std::string describe(const WorkerEntry& worker);

}  // namespace wherry::merge
