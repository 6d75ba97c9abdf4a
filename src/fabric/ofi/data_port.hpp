// SPDX-License-Identifier: Apache-2.0
// The TCP port at which libfabric waits for data endpoints. Any host that reaches it may connect there, and
// libfabric's tcp provider keeps one descriptor for each connection that says nothing, without a limit of time; 1.17
// also waits on the service thread for the rest of a message of which only the beginning came.
#pragma once

#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {

/// Keeps strangers from libfabric's socket that listens at `local`: a connection without data stays in the kernel, and
/// the rest of a message is not waited for. The socket is not inherited by programs that are executed. libfabric does
/// not tell the descriptor, so it is looked for among this process's. False: it was not found, as with a provider that
/// does not use TCP, or without /proc.
bool guard_data_port(const SocketAddress& local) noexcept;

}  // namespace wherry::fabric::ofi
