// SPDX-License-Identifier: Apache-2.0
// The kernel's socket behind an endpoint.
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"

namespace wherry::scif {

/// A packet socket with close-on-exec. Throws Error(EMFILE).
UniqueFd make_socket();

/// Makes calls on it return at once although the program may have left it blocking, and makes it unwritable as soon as
/// a packet of kFatPacket bytes lies at the peer, but not for a few small ones.
void tune_socket(int socket);

/// What distinguishes it from all others. 0: there is none behind the descriptor.
std::uint64_t inode_of(int descriptor);

/// A descriptor that this process has of it, other than `except`. -1: it has none.
int descriptor_of(std::uint64_t inode, int except = -1);

}  // namespace wherry::scif
