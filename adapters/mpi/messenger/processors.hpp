// SPDX-License-Identifier: Apache-2.0
// How many processors the processes of this job may run on together.
#pragma once

#include <cstddef>

namespace wherry::mpi {

/// Affinity of this process or of its parent, whichever is larger: launchers bind each rank to one processor, but not
/// themselves.
std::size_t job_processors();

}  // namespace wherry::mpi
