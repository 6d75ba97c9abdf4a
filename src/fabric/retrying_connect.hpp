// SPDX-License-Identifier: Apache-2.0
// Connects to a listener that may start later. All layers above connect with this. May include: base.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace wherry::fabric {

/// Until when a refused attempt (ECONNREFUSED) is repeated, for each cause. Empty: without limit. A deadline in the
/// past: it is not repeated. All other errors end the attempt at once.
struct RetryUntil {
  Deadline nobody_listens;
  Deadline queue_full;
};

/// Starts to connect and returns at once.
///
/// If the first attempt is refused, or waits for a listener, the returned object has a timer (two descriptors). Its
/// try_finish repeats the attempt when the timer has expired. Its descriptor stays the same. A refusal of an attempt
/// that has found a listener is final.
///
/// Its try_finish throws the errors of the fabric's try_finish and of Fabric::connect. In addition: ECONNREFUSED after
/// the deadline (the text tells how long it waited), and EBADF in a forked child, which shares its parent's timer.
///
/// Throws Error: as Fabric::connect (ECONNREFUSED if the attempt is not to be repeated); EMFILE, ENFILE, ENOMEM for the
/// timer.
std::unique_ptr<Connecting> start_connect(Fabric& fabric, const Address& address, const Offer& offer,
                                          const RetryUntil& until);

/// Blocks until the peer has accepted. Throws the errors of try_finish, and Error(ETIMEDOUT).
std::unique_ptr<Connection> finish(Connecting& attempt, const Address& address, const Deadline& deadline);

}  // namespace wherry::fabric
