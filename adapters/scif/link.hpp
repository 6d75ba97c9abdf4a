// SPDX-License-Identifier: Apache-2.0
// What a connected endpoint has: memory that both sides share, and in it the two queues and the tables of windows.
#pragma once

#include <memory>

#include "adapters/scif/endpoint_entry.hpp"
#include "adapters/scif/endpoint_waiter.hpp"
#include "adapters/scif/receive_queue.hpp"
#include "adapters/scif/send_queue.hpp"
#include "base/fork_generation.hpp"
#include "fabric/connection.hpp"
#include "window/space.hpp"

namespace wherry::scif {

/// What each side of a connection brings.
fabric::Offer offer();
/// Whether the peer's greeting and its segment are those of such a connection.
bool fits(const fabric::Greeting& greeting, std::size_t segment_bytes);

struct Link {
  Link(EndpointEntry& entry, EndpointWaiter& waiter, int fd, std::unique_ptr<fabric::Connection> joined);

  /// Tells the peer where this side's socket is to be found: see own_packet.hpp. It looks for it in the process that
  /// made the connection: what a forked child's numbers are is nothing to it.
  void show(int fd, std::uint64_t inode);

  std::unique_ptr<fabric::Connection> connection;
  ReceiveQueue receive_queue;
  SendQueue send_queue;
  window::Space space;
  const Origin origin;
};

}  // namespace wherry::scif
