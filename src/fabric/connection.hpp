// SPDX-License-Identifier: Apache-2.0
// One end of a connection: its memory and the peer's. Part of the contract that fabric.hpp summarizes. May include:
// base, arch, layout, memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <wherry/address.hpp>
#include <wherry/result.hpp>

#include "fabric/bell.hpp"
#include "fabric/exposure.hpp"
#include "fabric/offer.hpp"
#include "fabric/private_memory.hpp"

namespace wherry::fabric {

/// How long a close without its own deadline waits for the last flush.
inline constexpr std::chrono::seconds kCloseTimeout{10};

/// One end of an established connection. Its destruction is the death of this side: the peer notices it, and incomplete
/// puts are dropped. Call `flush` before for an orderly end. Afterwards the peer's segment is unreachable, and this
/// side's segment is freed if the fabric allocated it. Threads: see fabric.hpp.
class Connection : public Bells {
 public:
  /// Returns this side's segment. Valid as long as the connection, or as the caller's memory.
  [[nodiscard]] virtual std::span<std::byte> segment() const = 0;
  /// Returns the peer's segment if this process can load and store it; else null.
  [[nodiscard]] virtual std::byte* map() const { return nullptr; }
  /// Returns the size of the peer's segment.
  [[nodiscard]] virtual std::size_t remote_bytes() const = 0;

  /// Optional parts; null if the fabric has none. Ask once, after the connection was made. Valid as long as it.
  virtual Exposure* exposure() { return nullptr; }
  virtual PrivateMemory* private_memory() { return nullptr; }
  /// Optional part: returns the memory that the peer shows (its Offer::shared), mapped read-only; empty if none. Stays
  /// readable as long as this connection exists, also after the peer's death.
  [[nodiscard]] virtual std::span<const std::byte> shown() const { return {}; }

  /// Starts to copy `source` to `offset` in the peer's segment. Never waits for the peer's program.
  ///
  /// Returns the number of bytes taken, a prefix of `source`. It is smaller if the queue has too little room. 0: the
  /// queue is full, the range is outside the segment, or the connection is dead, which `peer_gone` tells. To wait for a
  /// full queue: `arm(Bell::space)`, put again, and if nothing is taken, wait for that bell.
  ///
  /// The caller must not change the bytes taken until `flush` has succeeded, or until a later word of the peer shows
  /// that it has read them. A load/store fabric may detect a death only in `wait` or `peer_gone`. Until then it takes
  /// bytes that will never be read.
  virtual std::size_t put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Puts all of `source`, and stores `value` in the aligned word at `word` as `signal` does. Fabrics that can do so
  /// send both as one message, so that the word needs no separate wake-up. Never waits for the peer's program.
  ///
  /// Takes everything, even if the queue is full. What it queues is bounded by the caller's own ring or section. False:
  /// out of range, unaligned, or dead; it is then unknown how much was put. The default calls `put` and then `signal`;
  /// it is only for fabrics whose put has no queue that can be full.
  virtual bool put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                              std::uint64_t value, Bell bell);
  /// The same for data that wraps around the end of a ring: puts `first` to `offset` and `second` to `start`, then
  /// stores `value`. If the queue is full, it also stores `value` minus the size of `second` after `first`.
  bool put_and_signal(std::uint64_t offset, std::span<const std::byte> first, std::uint64_t start,
                      std::span<const std::byte> second, std::uint64_t word, std::uint64_t value, Bell bell);
  /// Returns memory to put from and to get into, registered if the network requires that. Keep it until the puts from
  /// it are complete. If `sends_any_memory` is false, puts may only be made from such memory, this side's segment, and
  /// exposed memory. Throws std::bad_alloc, Error.
  virtual std::shared_ptr<std::byte[]> buffer(std::size_t bytes);
  [[nodiscard]] virtual bool sends_any_memory() const { return true; }
  /// Starts to copy from `offset` in the peer's segment. Complete when `flush` has succeeded. False: out of range, or
  /// dead.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Stores `value` in the aligned word at `offset` in the peer's segment, then rings `bell` if the peer has armed it.
  /// The word becomes visible only after all puts and signals of this connection that happened before, in the sense of
  /// C++: those of this thread, and of a thread that handed the connection over. False: out of range, unaligned, or
  /// dead.
  virtual bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) = 0;
  /// Blocks until every earlier put, get and signal is complete. Complete means that the peer's fabric has acknowledged
  /// it, so that even the death of this side does not undo it. It is not enough that a queue or kernel of this side has
  /// taken it. Waits for the fabrics, not for the peer's program. A peer whose whole process is stopped acknowledges
  /// nothing, but is not dead. Fails with ETIMEDOUT after the deadline, or ECONNRESET if the connection is dead.
  [[nodiscard]] virtual Result flush(Deadline deadline) = 0;

  /// Drives this connection on the calling thread, for a waiter of `bell` that polls its memory. If `progresses`,
  /// memory changes only in this call, or in a service thread of the fabric, which is slower. Never waits. Thread-safe.
  /// The service thread leaves the connection alone until `arm` or `flush`, and at most for ServicePark::kLease after
  /// the last call. On a fabric with neither `map` nor `progresses`, polling is useless, and takes CPU time from the
  /// service thread.
  virtual void progress(Bell /*bell*/) {}
  /// The waiter has stopped polling: the service thread may take over at once. Cheap; may be called without `progress`.
  virtual void end_progress(Bell /*bell*/) {}
  [[nodiscard]] virtual bool progresses() const { return false; }

  /// Returns true once the peer has closed or died. Everything that the peer had published is visible before that.
  /// Costs a system call while false.
  virtual bool peer_gone() = 0;
  /// The same, but as of the last `arm(bell)`: if that call has looked at the connection, this one needs no system
  /// call.
  virtual bool peer_gone_when_armed(Bell /*bell*/) { return peer_gone(); }

  [[nodiscard]] virtual const Peer& peer() const = 0;
  [[nodiscard]] virtual const Greeting& peer_greeting() const = 0;
};

}  // namespace wherry::fabric
