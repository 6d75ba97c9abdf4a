// SPDX-License-Identifier: Apache-2.0
// The contract between a way to reach a peer (a fabric) and everything above it, in parts:
//
//   offer.hpp           what a side brings into a connection
//   rendezvous.hpp      Listener and Connecting, which make a connection
//   connection.hpp      Connection: its own segment and the peer's, data, signals, the news of a death
//   bell.hpp            Bells, of which a Connection is one: sleeping until the peer has something, and waking it
//   exposure.hpp        optional: Exposure, memory beside the segments that one side exposes and the other reaches
//   private_memory.hpp  optional: PrivateMemory, the rest of the peer's process
//
// and here the fabric itself. May include: base, arch, layout, memory.
//
// A connection joins two sides. Each side has one *segment*: memory of its own that the peer may write and read, at
// offsets from the segment's start. Two forms of fabric exist:
//
//  - load/store: `map()` is a pointer to the peer's segment, for stores there, and `announce(bell)` is called after the
//    store that publishes. No virtual call, no system call while the peer is awake.
//  - put: `map()` is null. `put` starts a copy into the peer's segment, `signal` stores a word there. Puts may complete
//    late and in any order, and so may their bytes; only `signal` and the word of `put_and_signal` order them.
//
// `put`, `get`, `signal`, `flush` work on both forms, so code written for the put form runs everywhere. What a network
// may do to it: docs/design/network.md.
//
// Threads: calls that name Bell::data at the receiving thread and those that name Bell::space at the sending thread may
// run at the same time (and with them `put`, `signal`, `announce`): one thread per direction. `notify_self` and
// `peer_gone` may be called from any thread. Nothing here trusts the peer: segment sizes are checked when connecting,
// offsets by the caller's own arithmetic.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <wherry/address.hpp>

#include "fabric/bell.hpp"
#include "fabric/connection.hpp"
#include "fabric/offer.hpp"
#include "fabric/rendezvous.hpp"
#include "memory/shared_memory.hpp"

namespace wherry::fabric {

/// A way to reach peers. Lives for ever; calls from any thread.
class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Throws Error: EADDRINUSE, EADDRNOTAVAIL (another node's address), EACCES, EMFILE.
  virtual std::unique_ptr<Listener> listen(const Address& address) = 0;
  /// Of the fabric that a connection of this one is on: another where this one chooses among several (hosts/). Valid as
  /// long as the connection.
  [[nodiscard]] virtual std::string_view name_of(const Connection& /*connection*/) const { return name(); }
  /// One attempt to connect; never waits for the peer. Throws Error(ECONNREFUSED) if there is no listener, or
  /// QueueFull. Layers above use retrying_connect.hpp, which waits for a listener.
  virtual std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) = 0;
  /// Load/store fabrics only: a connector's segment reaches its acceptor with what was written into it, also if the
  /// connector has ended by then (Connecting::segment, Offer::departed).
  [[nodiscard]] virtual bool keeps_segments() const { return false; }
  /// Makes memory to show to peers. Load/store fabrics only: throws Error(ENOTSUP) on others; EINVAL, ENOMEM, EMFILE.
  virtual std::shared_ptr<memory::SharedMemory> share(std::size_t bytes);
};

/// The fabric of that name ("shm", "inproc", "inproc-put", "inproc-net", "inproc-net-words", "hosts", "ofi", or
/// "faulty+NAME" for a fabric wrapped in faults).
/// Throws Error(EINVAL) that lists the fabrics built in.
Fabric& find(std::string_view name);
/// The name of the fabric of addresses that name none: WHERRY_FABRIC if it is set; "hosts" if WHERRY_HOSTS is; else
/// "shm".
std::string configured_name();
/// The fabric an address names, else the configured one.
Fabric& find(const Address& address);
/// For what loads and stores its peers' memory and reaches them over shm, whichever fabric is configured. Throws
/// Error(ENOTSUP) if that is one whose peers cannot map each other's memory: the caller expects a network to be used.
void require_mapping(std::string_view operation);
/// Names of all fabrics built in.
std::span<const std::string> names();

}  // namespace wherry::fabric
