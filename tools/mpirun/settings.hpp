// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace wherry::tools {

/// Throws Error unless `budget` is a number of bytes that the provider accepts.
void check_budget(const std::string& budget);

/// Throws Error for the first environment variable without an option of mpirun whose value the provider would refuse.
/// Without this check the processes of the job would end in MPI_Init, or wait there for each other.
void check_variables();

}  // namespace wherry::tools
