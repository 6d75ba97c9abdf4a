// SPDX-License-Identifier: Apache-2.0
// The merging process of wherry-merge.
#pragma once

#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Receives and merges files until all workers are done or a signal asks to end. Returns 0, or 1 if an output could not
/// be written. Throws the exceptions of the server and the outputs.
int serve(const ProgramOptions& options, State& state);

}  // namespace wherry::merge
