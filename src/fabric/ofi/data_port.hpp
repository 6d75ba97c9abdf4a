// SPDX-License-Identifier: Apache-2.0
// Protects the TCP port at which libfabric waits for data endpoints. Any host that reaches the port may connect.
// Problems: libfabric's tcp provider keeps a descriptor for each silent connection, without a limit of time. Version
// 1.17 also blocks the service thread until the rest of a partial message has arrived.
#pragma once

#include <set>
#include <string>

#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {

/// Sets options of libfabric's socket that listens at `local`. A connection without data stays in the kernel for an
/// hour, libfabric waits at most 1 ms for the rest of a message, and executed programs do not inherit the socket.
/// libfabric does not tell the descriptor, so all descriptors of this process are searched. False if it was not found,
/// for example because the provider does not use TCP, or without /proc.
bool guard_data_port(const SocketAddress& local) noexcept;

/// Addresses in text, with ports.
using AddressTexts = std::set<std::string>;

/// Ends the connections to the data ports `local` whose remote address is none of `peers`, but was one of `suspects`,
/// the result of an earlier call. libfabric then closes them. Returns the remote addresses of the others that are none
/// of `peers`: requests that are not complete. Searches all descriptors of this process.
AddressTexts end_strangers(const AddressTexts& local, const AddressTexts& peers, const AddressTexts& suspects) noexcept;

}  // namespace wherry::fabric::ofi
