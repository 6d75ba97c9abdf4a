// SPDX-License-Identifier: Apache-2.0
//
// How many descriptors of a process may go to Wherry where a connection over tcp or ipc would do with one.
#pragma once

#include <sys/resource.h>

namespace zmq {

/// Whether `fd`, the last that was opened, lies in the lower half of those that the process may have. The lowest free
/// number is given first, so its number tells how many there are, whatever for.
inline bool wherry_has_room(int fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) < limit.rlim_cur / 2;
}

}  // namespace zmq
