// SPDX-License-Identifier: Apache-2.0
// A fabric is a way to reach a peer. This file and the following define the contract between fabrics and the layers
// above:
//
//   offer.hpp           what a side brings into a connection
//   rendezvous.hpp      Listener and Connecting, which make a connection
//   connection.hpp      Connection: this side's segment and the peer's, data, signals, detection of a death
//   bell.hpp            Bells, the base of Connection: sleeping until the peer has something, and waking it
//   exposure.hpp        optional: Exposure, memory besides the segments that one side exposes and the other reaches
//   private_memory.hpp  optional: PrivateMemory, the rest of the peer's process
//
// May include: base, arch, layout, memory.
//
// A connection joins two sides. Each side has one *segment*: its own memory, which the peer may write and read at
// offsets from the segment's start. There are two forms of fabric:
//
//  - Load/store fabric: `map()` points to the peer's segment. This side stores there, and calls `announce(bell)` after
//    the store that publishes. No virtual call, and no system call while the peer is awake.
//  - Put fabric: `map()` is null. `put` starts a copy into the peer's segment, `signal` stores a word there. Puts, and
//    their bytes, may complete late and in any order. Only `signal` and the word of `put_and_signal` order them.
//
// `put`, `get`, `signal` and `flush` work on both forms, so code written for put fabrics runs on all. For the effects
// of a network on it see docs/design/network.md.
//
// Threads: one per direction. The receiving thread calls functions with Bell::data, the sending thread those with
// Bell::space; both may run at the same time, and with them `put`, `signal` and `announce`. Any thread may call
// `notify_self` and `peer_gone`.
//
// Trust: fabrics do not trust the peer. They check segment sizes when connecting; callers compute their own offsets.
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

/// A way to reach peers. Never destroyed. Thread-safe.
class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Listens at an address. Throws Error: EADDRINUSE, EADDRNOTAVAIL (another node's address), EACCES, EMFILE.
  virtual std::unique_ptr<Listener> listen(const Address& address) = 0;
  /// Returns the name of the fabric that a connection uses. It differs from name() if this fabric chooses among several
  /// (hosts/). Valid as long as the connection.
  [[nodiscard]] virtual std::string_view name_of(const Connection& /*connection*/) const { return name(); }
  /// Makes one attempt to connect; never blocks. Throws Error(ECONNREFUSED) if it is known at once that there is no
  /// listener, or QueueFull. If another host must be asked, Connecting::try_finish throws instead. Layers above use
  /// retrying_connect.hpp, which waits for a listener.
  virtual std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) = 0;
  /// Returns whether a connector's segment reaches the acceptor with its content, even if the connector has ended by
  /// then (Connecting::segment, Offer::departed). Only load/store fabrics can do that.
  [[nodiscard]] virtual bool keeps_segments() const { return false; }
  /// Makes memory to show to peers. Throws Error: ENOTSUP on put fabrics; EINVAL, ENOMEM, EMFILE.
  virtual std::shared_ptr<memory::SharedMemory> share(std::size_t bytes);
};

/// Returns the fabric of that name: "shm", "inproc", "inproc-put", "inproc-net", "inproc-net-words", "hosts", "ofi", or
/// "faulty+NAME" for a fabric with injected faults. Throws Error(EINVAL) that lists the built-in fabrics.
Fabric& find(std::string_view name);
/// Returns the name of the fabric for addresses that name none: WHERRY_FABRIC if it is set; "hosts" if WHERRY_HOSTS is
/// set; else "shm".
std::string configured_name();
/// Returns the fabric that an address names, else the configured one.
Fabric& find(const Address& address);
/// For callers that load and store their peers' memory, and so use shm whichever fabric is configured. Throws
/// Error(ENOTSUP) if the configured fabric cannot map memory of peers, because its user expects a network to be used.
void require_mapping(std::string_view operation);
/// Returns the names of all built-in fabrics.
std::span<const std::string> names();

}  // namespace wherry::fabric
