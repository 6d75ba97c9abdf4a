// SPDX-License-Identifier: Apache-2.0
// Ports as the kernel knows them. A port is the abstract name that a socket is bound to; sockets that were accepted on
// it keep the name. So a port is free when the last of these is gone, however their processes ended.
#pragma once

#include <cstdint>

namespace wherry::scif {

inline constexpr std::uint16_t kFirstAutomaticPort = 1089;
inline constexpr std::uint16_t kFirstOpenPort = 1024;  ///< those below need privilege

/// Binds `socket` to the port of the node. Returns 0, or EINVAL if it is taken.
int bind_port(int socket, std::uint16_t node, std::uint16_t port);

/// Binds `socket` to a free port. Returns the port, or 0 if none is free.
std::uint16_t bind_any_port(int socket, std::uint16_t node);

/// Whether this process may bind the ports below kFirstOpenPort.
bool is_privileged();

}  // namespace wherry::scif
