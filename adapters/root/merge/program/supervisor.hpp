// SPDX-License-Identifier: Apache-2.0
// Runs the merging process as a child and restarts it. A file that passes the check and still crashes ROOT kills only
// the child. Then the file's worker is banned, and another child continues the output after the last batch. Workers
// that reconnect (reconnect=SECONDS in their URL) continue as well.
#pragma once

#include <functional>

#include "adapters/root/merge/program/state.hpp"

namespace wherry::merge {

/// Runs `serve` in a child process, and again each time a signal has killed it. Returns its exit status, or 1 after 20
/// consecutive deaths without progress. SIGINT and SIGTERM ask the child, or its successor, to end.
int supervise(State& state, const std::function<int()>& serve);

/// Creates a State in memory that is shared with children. Throws std::system_error.
State& make_shared_state();

}  // namespace wherry::merge
