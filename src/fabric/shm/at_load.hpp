// SPDX-License-Identifier: Apache-2.0
// Preparations of the shm fabric when the library is loaded.
#pragma once

namespace wherry::fabric::shm {

/// Enlarges the table of descriptors beyond those of select(), and registers for interrupts (membarrier), while the
/// process has one thread. With several threads the kernel waits for an RCU grace period for each of the two: the first
/// connection took 25 ms longer (AMD, family 25). If the process already has threads, or the kernel refuses, both are
/// done at the first connection. Returns true, for use as an initializer.
bool prepare_at_load() noexcept;

}  // namespace wherry::fabric::shm
