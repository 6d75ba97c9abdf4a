// SPDX-License-Identifier: Apache-2.0
// One end of a connection: its memory and the peer's, part of the contract that fabric.hpp sums up. May include: base,
// arch, layout, memory.
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

/// How long a close that has no deadline of its own waits for the last flush.
inline constexpr std::chrono::seconds kCloseTimeout{10};

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
  /// asked for when its queue is short of room. 0: the queue is full, or the connection is dead, which `peer_gone` then
  /// says. To wait for a full queue: `arm(Bell::space)`, put again, and if nothing is taken, wait for that bell. The
  /// caller must not change the bytes taken until `flush` has succeeded, or a later word of the peer shows that it has
  /// read them. Range outside the segment: nothing is taken. A load/store fabric may learn of a death only by
  /// `wait` or `peer_gone`; until then it takes what will never be read. Never waits for the peer's program.
  virtual std::size_t put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Puts all of `source`, and stores `value` in the aligned word at `word` as `signal` does: one message where the
  /// fabric can, so that the word needs no wake-up of its own. Takes everything, also where the queue is full: it then
  /// queues up to what the caller has in its own ring or section, which bounds it. Never waits for the peer's program.
  /// False: out of range, unaligned, or dead; how much was put is then not known. Here: `put`, which must not have a
  /// queue that can be full, and then `signal`.
  virtual bool put_and_signal(std::uint64_t offset, std::span<const std::byte> source, std::uint64_t word,
                              std::uint64_t value, Bell bell);
  /// The same of what wraps around the end of a ring: `first` to `offset`, then `second` to `start`, and `value` behind
  /// both. Where the queue is full the word is stored with `value` less the second part's bytes, too.
  bool put_and_signal(std::uint64_t offset, std::span<const std::byte> first, std::uint64_t start,
                      std::span<const std::byte> second, std::uint64_t word, std::uint64_t value, Bell bell);
  /// Memory to put from and to get into, which some networks have to register. May be any memory where
  /// `sends_any_memory`; elsewhere puts are made from it, the own segment and exposed memory alone. To be kept until
  /// what was put from it is complete. Throws std::bad_alloc, Error.
  virtual std::shared_ptr<std::byte[]> buffer(std::size_t bytes);
  [[nodiscard]] virtual bool sends_any_memory() const { return true; }
  /// Starts to copy from `offset` in the peer's segment; complete when `flush` succeeded. False: out of range, or
  /// dead.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Stores `value` in the aligned word at `offset` in the peer's segment, visible only after all earlier puts and
  /// signals of this connection, made by the same thread or by one that handed the connection over (what happened
  /// before, as C++ has it); then rings `bell` if the peer armed it. False: out of range, unaligned, or dead.
  virtual bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) = 0;
  /// Blocks until every earlier put, get and signal is complete: the peer's fabric has acknowledged it, so that not
  /// even this side's death takes it back. That a queue or a kernel of this side has taken it is not enough. Waits for
  /// the fabrics, never for the peer's program; but a peer that is stopped as a whole acknowledges nothing, and is not
  /// dead. Failed: ETIMEDOUT, the deadline passed; ECONNRESET, the connection was seen to be dead.
  [[nodiscard]] virtual Result flush(Deadline deadline) = 0;

  /// Does on this thread what is due on this connection, for the waiter of `bell` that looks at its memory again and
  /// again: there only this, or a service thread of the fabric's that is slower, makes memory change. Never waits. From
  /// any thread. The service thread leaves the connection alone until `end_progress`, `arm`, or ServicePark::kLease
  /// after the last call. Where neither `map` nor `progresses` is, looking gains nothing, and keeps the service thread
  /// from a core.
  virtual void progress(Bell /*bell*/) {}
  /// The waiter does not look any more. Cheap; may be called without `progress`.
  virtual void end_progress(Bell /*bell*/) {}
  [[nodiscard]] virtual bool progresses() const { return false; }

  /// True once the peer has closed or died. Costs a system call; cheap once true. Everything the peer had published is
  /// visible before it returns true.
  virtual bool peer_gone() = 0;
  /// The same as of the last `arm(bell)`, which may have seen it: then it costs no system call of its own.
  virtual bool peer_gone_when_armed(Bell /*bell*/) { return peer_gone(); }

  [[nodiscard]] virtual const Peer& peer() const = 0;
  [[nodiscard]] virtual const Greeting& peer_greeting() const = 0;
};

}  // namespace wherry::fabric
