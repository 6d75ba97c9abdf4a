// SPDX-License-Identifier: Apache-2.0
// Puts a packet on this side's own socket, so that poll(2) reports it readable. Only the peer's socket can send such a
// packet. It is borrowed from the peer's process for a moment (pidfd_getfd). That needs Linux 5.6 or newer, and a
// kernel that lets processes of one user read each other's memory.
#pragma once

#include <cstddef>

#include "adapters/scif/layout/page.hpp"
#include "fabric/connection.hpp"

namespace wherry::scif {

/// Content of such a packet; the peer's own packets contain 0.
inline constexpr std::byte kOwnPacket{1};

class PeersSocket {
 public:
  /// @param shown  descriptor and inode that the peer has told, in this side's memory
  PeersSocket(fabric::Connection& connection, const layout::ScifSocket& shown)
      : connection_(connection), shown_(shown) {}

  /// Whether the peer's socket can be borrowed. Takes a few system calls.
  [[nodiscard]] bool can_be_borrowed() const;
  /// Returns false if the peer is gone or the kernel refuses.
  [[nodiscard]] bool send_own_packet() const;

 private:
  fabric::Connection& connection_;
  const layout::ScifSocket& shown_;
};

}  // namespace wherry::scif
