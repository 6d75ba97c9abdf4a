// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapters/root/merge/program/options.hpp"
#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Receives and merges until all workers are done or a signal asks to end. Returns 0, or 1 if an output could not be
/// written. Throws what the server and the outputs throw.
int serve(const ProgramOptions& options, State& state);

}  // namespace wherry::merge
