// SPDX-License-Identifier: Apache-2.0
// Protects the TCP port at which libfabric waits for data endpoints. Any host that reaches the port may connect.
// Problems: libfabric's tcp provider keeps a descriptor for each silent connection, without a limit of time. Version
// 1.17 also blocks the service thread until the rest of a partial message has arrived.
#pragma once

#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {

/// Sets options of libfabric's socket that listens at `local`. A connection without data stays in the kernel for an
/// hour, libfabric waits at most 1 ms for the rest of a message, and executed programs do not inherit the socket.
/// libfabric does not tell the descriptor, so all descriptors of this process are searched. False if it was not found,
/// for example because the provider does not use TCP, or without /proc.
bool guard_data_port(const SocketAddress& local) noexcept;

}  // namespace wherry::fabric::ofi
