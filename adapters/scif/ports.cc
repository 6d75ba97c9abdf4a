// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/ports.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "adapters/scif/rendezvous.hpp"

namespace wherry::scif {

int bind_port(int socket, std::uint16_t node, std::uint16_t port) {
  // A closed listener's name is free, but its port is not while sockets that it accepted live. The name is bound last
  // of all, so no connection can be accepted on it between this check and the bind.
  if (named_sockets(node).ports.contains(port)) return EINVAL;
  return bind_to(socket, node, port) ? 0 : EINVAL;
}

std::uint16_t bind_any_port(int socket, std::uint16_t node) {
  constexpr std::uint32_t kCount = UINT16_MAX - kFirstAutomaticPort + 1;
  const auto taken = named_sockets(node).ports;
  // Each process begins at another port, so that a port that was just freed is not the next to be used.
  static std::uint32_t next = static_cast<std::uint32_t>(::getpid()) * 37U;
  for (std::uint32_t tries = 0; tries < kCount; ++tries) {
    const auto port =
        static_cast<std::uint16_t>(kFirstAutomaticPort + __atomic_fetch_add(&next, 1U, __ATOMIC_RELAXED) % kCount);
    if (!taken.contains(port) && bind_to(socket, node, port)) return port;
  }
  return 0;
}

bool is_privileged() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  return (sets[CAP_SYS_ADMIN / 32].effective & (1U << (CAP_SYS_ADMIN % 32))) != 0;
}

}  // namespace wherry::scif
