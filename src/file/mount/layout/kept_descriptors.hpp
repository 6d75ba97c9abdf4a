// SPDX-License-Identifier: Apache-2.0
// What a mount's daemon and its supervisor say to each other over a socket of whole messages (SOCK_SEQPACKET).
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::layout {

enum class KeeperWord : std::uint32_t {
  keep = 1,     ///< either way: a descriptor comes along. To the supervisor: in place of the one of the same key
  drop = 2,     ///< to the supervisor: the descriptor of the key is no longer needed
  all = 3,      ///< to the daemon, once, first of all that is not `keep`: nothing more was kept
  mounted = 6,  ///< to the supervisor, before the device: the mount's directory follows as text
  ready = 4,    ///< to the supervisor: the mount answers
  served = 5,   ///< to the supervisor, once: a request of a program was answered
};

/// W: sender, every field.
struct KeeperMessage {
  std::uint32_t word;  ///< KeeperWord
  std::uint32_t kind;  ///< of the key: a KeptKind
  std::uint64_t id;    ///< of the key, among those of its kind
};
static_assert(sizeof(KeeperMessage) == 16 && offsetof(KeeperMessage, kind) == 4 && offsetof(KeeperMessage, id) == 8);

}  // namespace wherry::layout
