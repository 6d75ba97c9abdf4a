// SPDX-License-Identifier: Apache-2.0
// How two sides find each other, part of the contract that fabric.hpp sums up. May include: base, arch, layout, memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "fabric/connection.hpp"
#include "fabric/offer.hpp"

namespace wherry::fabric {

/// A port that is listened on. Destroying it frees the port and refuses the connectors that wait.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Null when no connector waits. Throws Error for what is wrong on this side (out of memory, out of descriptors);
  /// a connector that breaks the handshake is refused, which the log says.
  virtual std::unique_ptr<Connection> try_accept(const Offer& offer) = 0;
  /// Readable while try_accept may have something to do.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// The address bound, `*` resolved.
  [[nodiscard]] virtual const Address& local() const = 0;
};

/// A connection attempt under way; it completes when the peer accepts. Destroying it gives up.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Null while the peer has not answered. Throws Error(ECONNREFUSED) when refused, Error(ECONNRESET) when the peer
  /// died.
  virtual std::unique_ptr<Connection> try_finish() = 0;
  /// Readable when try_finish has news.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// The own segment, where Fabric::keeps_segments: what is written there reaches the acceptor, also once this attempt
  /// is destroyed. Stays in place when the attempt becomes a connection. Empty: nothing can be written yet.
  [[nodiscard]] virtual std::span<std::byte> segment() const { return {}; }
  /// True while there is no listener yet that could accept.
  [[nodiscard]] virtual bool waits_for_listener() const { return false; }
};

/// ECONNREFUSED because the listener's queue is full: worth another attempt.
class QueueFull : public Error {
 public:
  using Error::Error;
};

}  // namespace wherry::fabric
