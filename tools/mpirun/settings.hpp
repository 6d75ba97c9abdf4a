// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace wherry::tools {

/// Throws Error unless `budget` is a number of bytes that the provider takes.
void check_budget(const std::string& budget);

/// Throws Error that names the first environment variable without an option of ours whose value the provider would
/// refuse. The processes of the job would end in MPI_Init, or wait there for each other.
void check_variables();

}  // namespace wherry::tools
