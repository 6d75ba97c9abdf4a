// SPDX-License-Identifier: Apache-2.0
// Users, as the kernel numbers them for this process.
#pragma once

#include <sys/types.h>

namespace wherry {

/// False for the number of more than one user: in a user namespace every user that has no number there reads as the
/// overflow uid (65534, or what /proc/sys/kernel/overflowuid says). Where all users have numbers, as outside of user
/// namespaces, that is a user like any other. Costs a file that is read where it is that number. From any thread.
bool names_one_user(uid_t uid);

}  // namespace wherry
