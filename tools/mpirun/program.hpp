// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "mpirun/library.hpp"

namespace wherry::tools {

/// The interpreter that a script names after #!; else the file itself.
std::filesystem::path interpreter_of(const std::filesystem::path& program);

/// Throws Error unless a program without an MPI may start one that has an MPI: a script, python, a shell and similar
/// programs.
void require_starter(const std::filesystem::path& program);

/// Raises the limit of open files as far as a job with this number of processes needs. Throws Error if the hard limit
/// is too low.
void allow_files_for(int processes, MpiFamily family);

}  // namespace wherry::tools
