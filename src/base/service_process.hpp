// SPDX-License-Identifier: Apache-2.0
// What a program that serves until a signal ends it does first. Includes nothing of ours but base/.
#pragma once

#include <initializer_list>

#include "base/unique_fd.hpp"

namespace wherry {

/// Raises the limit of open files as far as the user may: the soft limit is made for programs that use select. SIGPIPE
/// and SIGXFSZ are ignored, so that a reader that is gone and a limit of file sizes are errors of one call. The signals
/// in `ending` are blocked in this thread and those that it starts; each makes the returned descriptor readable. One
/// that is ignored, as nohup and a shell's & leave it, stays ignored. Invalid, and errno: no descriptor is left.
UniqueFd prepare_service_process(std::initializer_list<int> ending) noexcept;

}  // namespace wherry
