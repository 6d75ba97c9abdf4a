// SPDX-License-Identifier: Apache-2.0
// How this process ends: what a program leaves open is complete only if its exit status says so.
#pragma once

#include <functional>

namespace wherry::root {

/// Has the exit status seen by whatever static is complete by now, when exit() destroys it. To be called before
/// `at_end`, a few times at most.
void watch_for_end();

/// Whether the program is over: exit() is running, or Python is clearing up.
bool is_ending();

/// Calls `act` with the exit status: now, if exit() is running, else in exit(). Never in a child that was forked
/// meanwhile, and never if the process ends in another way.
void at_end(std::function<void(int status)> act);

}  // namespace wherry::root
