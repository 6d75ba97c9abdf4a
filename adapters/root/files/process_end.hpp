// SPDX-License-Identifier: Apache-2.0
// Reports how this process ends. A file that the program leaves open is complete only if the exit status is 0.
#pragma once

#include <functional>

namespace wherry::root {

/// Makes the exit status known to static objects that exist by now, when exit() destroys them. Call it before `at_end`,
/// and only a few times: each call registers a function with on_exit().
void watch_for_end();

/// Whether the process is ending: exit() has begun, or the Python interpreter is finalizing.
bool is_ending();

/// Calls `act` with the exit status: at once if exit() is running, else in exit(). Does not call it in a child that is
/// forked meanwhile, nor if the process ends in another way.
void at_end(std::function<void(int status)> act);

}  // namespace wherry::root
