// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace wherry::bench::file {

struct Child {
  pid_t pid = -1;
  std::string words{};  ///< what it wrote to its standard output and error, without the end of the last line
};

/// Starts a program, and returns when it has closed what it writes to, or has ended. A terminal's ^C does not reach it.
/// Throws std::system_error.
Child start(const std::vector<std::string>& command);

/// Waits for its end. Returns its exit status; of one that was killed 128 and the signal.
int reap(pid_t pid);

}  // namespace wherry::bench::file
