// SPDX-License-Identifier: Apache-2.0
//
// A process that looks after a peer's program: whatever the program starts (launchers, daemons, ranks, Java machines)
// is ended with it, also when `wherry bench` itself is killed. What is left behind would spin, and spoil what is
// measured after it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace wherry::bench {

/// What a program is started with. The descriptors stay the caller's.
struct Launch {
  std::vector<std::string> command;
  int input = -1;
  int output = -1;
  int errors = -1;
  /// The program's own: TMPDIR is the folder of this name in /dev/shm, and whatever there begins with it is removed.
  std::string name;
};

/// Starts the program below a supervisor, which ends when the program has ended and nothing is left of it. SIGTERM
/// makes it end everything at once. The caller reaps the supervisor; its exit status is the program's, 128 + N for
/// signal N.
pid_t start_supervisor(const Launch& launch);

}  // namespace wherry::bench
