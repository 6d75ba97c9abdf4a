// SPDX-License-Identifier: Apache-2.0
// Prepares a program that serves until a signal ends it. Includes only base/.
#pragma once

#include <initializer_list>

#include "base/unique_fd.hpp"

namespace wherry {

/// Raises the soft limit of open files to the hard limit: the soft limit is low for programs that use select. Ignores
/// SIGPIPE and SIGXFSZ, so that a closed reader and the limit of file sizes are errors of one call. Blocks the signals
/// in `ending` in this thread and those that it starts. Each of them makes the returned descriptor readable. A signal
/// that is ignored, as by nohup or a shell's &, stays ignored. Returns an invalid descriptor, with errno, if none can
/// be made.
UniqueFd prepare_service_process(std::initializer_list<int> ending) noexcept;

}  // namespace wherry
