// SPDX-License-Identifier: Apache-2.0
// User ids as this process sees them.
#pragma once

#include <sys/types.h>

namespace wherry {

/// Whether `uid` identifies a single user. In a user namespace all users without a number there read as the overflow
/// uid (65534, or /proc/sys/kernel/overflowuid). If every user has a number, as outside user namespaces, the overflow
/// uid is an ordinary user. Reads a file if `uid` is the overflow uid. From any thread.
bool names_one_user(uid_t uid);

}  // namespace wherry
