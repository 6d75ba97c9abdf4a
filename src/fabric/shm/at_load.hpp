// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::fabric::shm {

/// Makes room for descriptors beyond select() and takes part in interrupts, while the process has one thread. With
/// more, the kernel waits for a grace period of RCU at each of the two: the first connection took 25 ms longer (AMD,
/// family 25). A process that has threads already, or a kernel that refuses, does both at its first connection.
/// Returns true, for an initializer.
bool prepare_at_load() noexcept;

}  // namespace wherry::fabric::shm
