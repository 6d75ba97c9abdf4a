// SPDX-License-Identifier: Apache-2.0
// A packet on this side's own socket, so that poll(2) shows it readable. Only the peer's socket can send one; it is
// borrowed from the peer's process for a moment (pidfd_getfd), where the kernel lets processes of one user do that:
// where it lets them read each other's memory, and on Linux 5.6 or newer.
#pragma once

#include <cstddef>

#include "adapters/scif/layout/page.hpp"
#include "fabric/connection.hpp"

namespace wherry::scif {

/// What such a packet contains; the peer's contain 0.
inline constexpr std::byte kOwnPacket{1};

class PeersSocket {
 public:
  /// @param shown  what the peer tells of its socket, in this side's memory
  PeersSocket(fabric::Connection& connection, const layout::ScifSocket& shown)
      : connection_(connection), shown_(shown) {}

  /// Whether it can be borrowed. A few system calls.
  [[nodiscard]] bool can_be_borrowed() const;
  /// False: the peer is gone, or the kernel refuses.
  [[nodiscard]] bool send_own_packet() const;

 private:
  fabric::Connection& connection_;
  const layout::ScifSocket& shown_;
};

}  // namespace wherry::scif
