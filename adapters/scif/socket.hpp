// SPDX-License-Identifier: Apache-2.0
// The kernel's socket behind an endpoint.
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"

namespace wherry::scif {

/// A packet socket with close-on-exec. Throws Error(EMFILE).
UniqueFd make_socket();

/// Makes calls on the socket return at once, although the program may have left it blocking. Makes it unwritable while
/// a packet of kFatPacket bytes lies at the peer, but not for a few small ones.
void tune_socket(int socket);

/// Returns the inode of the socket, which identifies it. 0 if there is no socket behind the descriptor.
std::uint64_t inode_of(int descriptor);

/// Returns a descriptor that this process has of the socket, other than `except`, or -1.
int descriptor_of(std::uint64_t inode, int except = -1);

}  // namespace wherry::scif
