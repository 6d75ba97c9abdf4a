// SPDX-License-Identifier: Apache-2.0
// The result of a job: whether it is whole, and if not, what is missing.
#pragma once

#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Whether at least one worker came, as many as --workers says, and all of them finished with nothing refused, and
/// everything that is added up could be.
bool is_whole(const ProgramOptions& options, const State& state);

/// Prints the summary, writes the JSON file, and names on standard error what is missing. Returns the exit status:
/// `status` if that is not 0, else 3 for a job that is not whole. Throws std::system_error if the file cannot be
/// written.
int report(const ProgramOptions& options, const State& state, int status, double seconds);

}  // namespace wherry::merge
