// SPDX-License-Identifier: Apache-2.0
// Sleeping on descriptors, also where the kernel refuses ppoll.
#pragma once

#include <poll.h>

#include <ctime>
#include <span>

#include "fabric/bell.hpp"

namespace wherry::fabric {

/// Sleeps like ppoll until one of `polled` has a requested event, and stores the events in `revents`. Returns how many
/// have events; 0 after the deadline; a negative number if a signal handler ran. Not a cancellation point.
///
/// If the kernel refuses ppoll, it sleeps about a millisecond and reports all requested events. Causes are a seccomp
/// filter, or a limit of open files that was lowered below the number of `polled`. So the caller must check whether an
/// event is real before it sleeps again.
int wait_for_events(std::span<pollfd> polled, const Deadline& deadline) noexcept;

/// Sleeps until `descriptor` is readable. May return early, as wait_for_events. False after the deadline.
bool wait_until_readable(int descriptor, const Deadline& deadline) noexcept;

/// Stores the time left until a deadline, at least 0, in `storage`, and returns it for ppoll. Null if there is no
/// deadline.
const timespec* time_left(const Deadline& deadline, timespec& storage) noexcept;

}  // namespace wherry::fabric
