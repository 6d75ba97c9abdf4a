// SPDX-License-Identifier: Apache-2.0
//
// The options of wherry mpirun as users of other launchers write them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wherry::tools {

/// The words after `wherry mpirun`, with the options before the program in the spelling that CLI11 reads: launchers
/// take -np 2, which CLI11 reads as -n p. An option of `command` may have one hyphen or two, and its value may follow
/// in the next word, behind = or, if it is a number, without a space. The program and its arguments, and all after --,
/// stay as they are. Throws UsageError for an option that is not one of `command`: of an option of the MPI's launcher
/// it shows the command line that passes it on.
std::vector<std::string> normalised(const CLI::App& command, const std::vector<std::string>& words);

}  // namespace wherry::tools
