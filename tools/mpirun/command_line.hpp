// SPDX-License-Identifier: Apache-2.0
//
// Accepts the options of wherry mpirun in the notation of other launchers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wherry::tools {

/// Returns the words after `wherry mpirun`, with the options before the program in CLI11's notation. Launchers take -np
/// 2, which CLI11 reads as -n p.
///
/// An option of `command` may have one hyphen or two. Its value may be the next word, follow =, or, if it is a number,
/// follow without a space. The program, its arguments, and all words after -- stay unchanged.
///
/// Throws UsageError for an option that is not one of `command`. For an option of the MPI's launcher the error shows
/// the command line that passes it on.
std::vector<std::string> normalised(const CLI::App& command, const std::vector<std::string>& words);

}  // namespace wherry::tools
