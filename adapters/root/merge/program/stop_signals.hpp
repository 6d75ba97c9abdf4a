// SPDX-License-Identifier: Apache-2.0
// Records SIGINT and SIGTERM in shared memory.
#pragma once

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// From now on SIGINT and SIGTERM set `state.stopped`, in this process and in those that it forks. The flag is shared,
/// so that a signal between the death of one child and the start of the next is not lost.
void stop_on_signals(State& state);

}  // namespace wherry::merge
