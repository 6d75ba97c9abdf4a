// SPDX-License-Identifier: Apache-2.0
// The shared memory of a connected endpoint, with the two queues and the tables of windows.
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

/// What each side brings into a connection.
fabric::Offer offer();
/// Whether the peer's greeting and segment are those of a SCIF connection.
bool fits(const fabric::Greeting& greeting, std::size_t segment_bytes);

struct Link {
  Link(EndpointEntry& entry, EndpointWaiter& waiter, int fd, std::unique_ptr<fabric::Connection> joined);

  /// Tells the peer which descriptor and inode this side's socket has: see own_packet.hpp. A forked child tells
  /// nothing, because the peer looks in the process that made the connection.
  void show(int fd, std::uint64_t inode);

  std::unique_ptr<fabric::Connection> connection;
  ReceiveQueue receive_queue;
  SendQueue send_queue;
  window::Space space;
  const Origin origin;
};

}  // namespace wherry::scif
