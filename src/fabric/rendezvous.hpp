// SPDX-License-Identifier: Apache-2.0
// How two sides find each other. Part of the contract that fabric.hpp summarizes. May include: base, arch, layout,
// memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "fabric/connection.hpp"
#include "fabric/offer.hpp"

namespace wherry::fabric {

/// A listening port. Its destruction frees the port and refuses the connectors that wait.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Accepts a connector. Null if none waits. Throws Error for a failure of this side, such as no memory or no
  /// descriptors. A connector that breaks the handshake is refused, and the reason is logged.
  virtual std::unique_ptr<Connection> try_accept(const Offer& offer) = 0;
  /// Returns a descriptor that is readable while try_accept may have something to do.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Returns the bound address, with `*` resolved.
  [[nodiscard]] virtual const Address& local() const = 0;
};

/// An attempt to connect. It completes when the peer accepts. Its destruction cancels the attempt.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Returns the connection, or null while the peer has not answered. Throws Error: ECONNREFUSED if the attempt was
  /// refused, ECONNRESET if the peer died. An attempt that has failed throws the same again.
  virtual std::unique_ptr<Connection> try_finish() = 0;
  /// Returns a descriptor that is readable while try_finish may have something to do.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Returns this side's segment if Fabric::keeps_segments. Data written there reaches the acceptor, even if this
  /// attempt is destroyed before. Its address stays the same when the attempt becomes a connection. Empty: nothing can
  /// be written yet.
  [[nodiscard]] virtual std::span<std::byte> segment() const { return {}; }
  /// Returns true while no listener was found. If try_finish throws ECONNREFUSED then, another attempt may find one.
  [[nodiscard]] virtual bool waits_for_listener() const { return false; }
  /// Returns why the attempt is not complete and what to do, for a caller whose time is over.
  [[nodiscard]] virtual std::string obstacle() const {
    return "somebody listens there but did not accept in time; wait longer (WHERRY_CONNECT_TIMEOUT)";
  }
};

/// ECONNREFUSED because the listener's queue is full: another attempt may succeed.
class QueueFull : public Error {
 public:
  using Error::Error;
};

}  // namespace wherry::fabric
