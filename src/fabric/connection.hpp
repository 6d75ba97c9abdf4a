// SPDX-License-Identifier: Apache-2.0
// One end of a connection: its memory and the peer's, part of the contract that fabric.hpp sums up. May include: base,
// arch, layout, memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <wherry/address.hpp>

#include "fabric/bell.hpp"
#include "fabric/exposure.hpp"
#include "fabric/offer.hpp"
#include "fabric/private_memory.hpp"

namespace wherry::fabric {

/// One end of an established connection. Destroying it is what death is: the peer notices, puts not yet complete are
/// dropped; `flush` first to leave in order. The peer's segment is unreachable afterwards, the own one freed if the
/// fabric allocated it.
class Connection : public Bells {
 public:
  /// The own segment. Lives as long as the connection (or the caller's memory).
  [[nodiscard]] virtual std::span<std::byte> segment() const = 0;
  /// The peer's segment where this process can load and store it, else null.
  [[nodiscard]] virtual std::byte* map() const { return nullptr; }
  /// Bytes of the peer's segment.
  [[nodiscard]] virtual std::size_t remote_bytes() const = 0;

  /// Optional parts, to be asked for once, when the connection has been made; null: the fabric has none. They live as
  /// long as this connection.
  virtual Exposure* exposure() { return nullptr; }
  virtual PrivateMemory* private_memory() { return nullptr; }
  /// Another: what the peer shows (its Offer::shared), mapped for reading only; empty if it shows nothing. Stays
  /// readable as long as this connection exists, whatever becomes of the peer.
  [[nodiscard]] virtual std::span<const std::byte> shown() const { return {}; }

  /// Starts to copy `source` to `offset` in the peer's segment. Returns how many bytes it took, a prefix; fewer than
  /// asked for when its queue is short of room, 0 only when the connection is dead. The bytes taken must stay unchanged
  /// until the peer is known to have seen them (a later word of the peer's says so) or `flush` returned. Range outside
  /// the segment: nothing is taken. A load/store fabric may learn of a death only by `wait` or `peer_gone`; until then
  /// it takes what will never be read. May block for the fabric's own queue, never for the peer's program.
  virtual std::size_t put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Starts to copy from `offset` in the peer's segment; complete when `flush` returned true. False: out of range, or
  /// dead.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Stores `value` in the aligned word at `offset` in the peer's segment, visible only after all earlier puts and
  /// signals of this connection, made by the same thread or by one that handed the connection over (what happened
  /// before, as C++ has it); then rings `bell` if the peer armed it. False: out of range, unaligned, or dead.
  virtual bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) = 0;
  /// Blocks until every earlier put, get and signal is complete. Waits for the fabric, never for the peer's program.
  /// False: the connection died before.
  virtual bool flush() = 0;

  /// True once the peer has closed or died. Costs a system call; cheap once true. Everything the peer had published is
  /// visible before it returns true.
  virtual bool peer_gone() = 0;
  /// The same as of the last `arm(bell)`, which may have seen it: then it costs no system call of its own.
  virtual bool peer_gone_when_armed(Bell /*bell*/) { return peer_gone(); }

  [[nodiscard]] virtual const Peer& peer() const = 0;
  [[nodiscard]] virtual const Greeting& peer_greeting() const = 0;
};

}  // namespace wherry::fabric
