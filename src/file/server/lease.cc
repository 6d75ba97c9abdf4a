// SPDX-License-Identifier: Apache-2.0
#include "file/server/lease.hpp"

#include <fcntl.h>

namespace wherry::file {

/// The end of a lease resets its signal and its owner, so both are set each time.
bool take_lease(int descriptor, int type, pid_t thread) {
  const f_owner_ex owner{.type = F_OWNER_TID, .pid = thread};
  return ::fcntl(descriptor, F_SETSIG, kLeaseSignal) == 0 && ::fcntl(descriptor, F_SETOWN_EX, &owner) == 0 &&
         ::fcntl(descriptor, F_SETLEASE, type) == 0;
}

}  // namespace wherry::file
