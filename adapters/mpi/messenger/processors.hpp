// SPDX-License-Identifier: Apache-2.0
// How many processors the processes of this job may run on together.
#pragma once

#include <cstddef>

namespace wherry::mpi {

/// Those of this process, or of its parent if those are more: launchers bind each rank to one, but not themselves.
std::size_t job_processors();

}  // namespace wherry::mpi
