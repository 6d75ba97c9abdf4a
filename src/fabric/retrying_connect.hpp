// SPDX-License-Identifier: Apache-2.0
// Connecting that begins before the listener: what every layer above connects with. May include: base.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"

namespace wherry::fabric {

/// The deadlines for repeating an attempt that is refused (ECONNREFUSED), one for each cause. Empty: no deadline. One
/// that has passed: the attempt is not repeated. Any other error ends the attempt at once.
struct RetryUntil {
  Deadline nobody_listens;
  Deadline queue_full;
};

/// Starts to connect and returns at once. While the first attempt is refused, the object returned holds no attempt of
/// the fabric's but a timer (two descriptors), and its try_finish repeats the attempt when the timer has expired; its
/// descriptor stays the same. A refusal of an attempt that is under way is final: there was a listener.
///
/// try_finish throws, beside what the fabric's does: ECONNREFUSED when the time is over (the text says how long it
/// waited), what Fabric::connect throws, EBADF in a forked child, whose timer would be its parent's.
///
/// Throws Error: as Fabric::connect does (ECONNREFUSED if the refusal is not to be repeated); EMFILE, ENFILE, ENOMEM
/// for the timer.
std::unique_ptr<Connecting> start_connect(Fabric& fabric, const Address& address, const Offer& offer,
                                          const RetryUntil& until);

/// Blocks until the peer has accepted. Throws what try_finish throws, and Error(ETIMEDOUT).
std::unique_ptr<Connection> finish(Connecting& attempt, const Address& address, const Deadline& deadline);

}  // namespace wherry::fabric
