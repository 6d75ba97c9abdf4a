// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "mpirun/library.hpp"

namespace wherry::tools {

/// The interpreter of a script that names one after #!, else the file itself.
std::filesystem::path interpreter_of(const std::filesystem::path& program);

/// Throws Error unless a program that has no MPI itself may start one that has: a script, python, a shell and the like.
void require_starter(const std::filesystem::path& program);

/// Raises the limit of open files as far as a job of so many processes needs. Throws Error if this user may not have
/// it.
void allow_files_for(int processes, MpiFamily family);

}  // namespace wherry::tools
