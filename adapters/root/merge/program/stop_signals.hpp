// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// From now on SIGINT and SIGTERM set `state.stopped`, in this process and in those that it forks. Whichever of them is
/// told, all know: a signal between one child and the next is not lost.
void stop_on_signals(State& state);

}  // namespace wherry::merge
