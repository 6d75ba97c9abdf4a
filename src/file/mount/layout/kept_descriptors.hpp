// SPDX-License-Identifier: Apache-2.0
// The messages between a mount's daemon and its supervisor, over a SOCK_SEQPACKET socket.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::layout {

enum class KeeperWord : std::uint32_t {
  keep = 1,     ///< both ways: with a descriptor. To the supervisor: replaces the one of the same key
  drop = 2,     ///< to the supervisor: the key's descriptor is no longer needed
  all = 3,      ///< to the daemon, once, after the last `keep`: nothing more was kept
  mounted = 6,  ///< to the supervisor, before the device: the mount's directory follows as text
  ready = 4,    ///< to the supervisor: the mount answers
  served = 5,   ///< to the supervisor, once: a request of a program was answered
};

/// W: sender, every field.
struct KeeperMessage {
  std::uint32_t word;  ///< KeeperWord
  std::uint32_t kind;  ///< of the key: KeptKind
  std::uint64_t id;    ///< of the key, within its kind
};
static_assert(sizeof(KeeperMessage) == 16 && offsetof(KeeperMessage, kind) == 4 && offsetof(KeeperMessage, id) == 8);

}  // namespace wherry::layout
