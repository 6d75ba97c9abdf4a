// SPDX-License-Identifier: Apache-2.0
//
// Limits the descriptors of a process that go to Wherry although tcp or ipc would need only one for a connection.
#pragma once

#include <sys/resource.h>

namespace zmq {

/// Whether `fd`, the last that was opened, is in the lower half of those that the process may have. The lowest free
/// number is given first, so this number tells how many there are, for any purpose.
inline bool wherry_has_room(int fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) < limit.rlim_cur / 2;
}

}  // namespace zmq
