// SPDX-License-Identifier: Apache-2.0
// Reports the result of a job: whether it is whole, and if not, what is missing.
#pragma once

#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Returns whether the job is whole: at least one worker came, and as many as --workers requires; all of them finished;
/// no file was refused; and all objects could be added up.
bool is_whole(const ProgramOptions& options, const State& state);

/// Prints the summary, writes the JSON file, and reports on standard error what is missing. Returns the exit status:
/// `status` if it is not 0; else 3 if the job is not whole, 0 if it is. Throws std::system_error if the JSON file
/// cannot be written.
int report(const ProgramOptions& options, const State& state, int status, double seconds);

}  // namespace wherry::merge
