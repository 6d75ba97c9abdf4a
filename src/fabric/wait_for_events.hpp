// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <ctime>
#include <span>

#include "fabric/bell.hpp"

namespace wherry::fabric {

/// As ppoll: sleeps until one of `polled` has one of the events asked for, and says in `revents` which. Returns how
/// many have; 0: the deadline passed; less: a signal handler ran. Not a cancellation point.
///
/// Where the kernel refuses ppoll (a seccomp filter; a limit of open files that was lowered below the number of
/// `polled`) it sleeps for a millisecond at most and claims all that was asked for. So the caller looks for itself
/// whether a claim is true, before it sleeps again.
int wait_for_events(std::span<pollfd> polled, const Deadline& deadline) noexcept;

/// Sleeps until `descriptor` is readable, or claimed to be. False: the deadline passed.
bool wait_until_readable(int descriptor, const Deadline& deadline) noexcept;

/// The time left until a deadline, none if it has passed, as ppoll takes it in `storage`; null: for ever.
const timespec* time_left(const Deadline& deadline, timespec& storage) noexcept;

}  // namespace wherry::fabric
