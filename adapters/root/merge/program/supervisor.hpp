// SPDX-License-Identifier: Apache-2.0
// Merging happens in a child. A file that gets past the check and still kills ROOT kills the child only: its worker is
// banned, and another child goes on with the output where the last batch left it. Workers that look for a restarted
// server (reconnect=SECONDS in their URL) go on, too.
#pragma once

#include <functional>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Runs `serve` in a child process, again after each death for which a worker can be blamed, and returns its exit
/// status. SIGINT and SIGTERM ask the child to end, or its successor.
int supervise(State& state, const std::function<int()>& serve);

/// A State in memory that is shared with children. Throws std::system_error.
State& make_shared_state();

}  // namespace wherry::merge
