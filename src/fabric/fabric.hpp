// SPDX-License-Identifier: Apache-2.0
// The contract between a way to reach a peer (a fabric) and everything above it. May include: base, arch, layout.
//
// A connection joins two sides. Each side has one *segment*: memory of its own that the peer may write and read, at
// offsets from the segment's start. Two forms of fabric exist:
//
//  - load/store: `map()` is a pointer to the peer's segment. Whoever uses it stores there directly and calls
//    `announce(bell)` after the store that publishes. No virtual call, no system call while the peer is awake.
//  - put: `map()` is null. `put` starts a copy into the peer's segment, `signal` stores a word there. Puts may complete
//    late and in any order, and so may their bytes; only `signal` orders them.
//
// `put`, `get`, `signal`, `flush` work on both forms, so code written for the put form runs everywhere.
//
// Bells. Each side has two bells, `data` (its receiver waits) and `space` (its sender waits). To sleep on one without
// losing a wake-up: `arm(bell)`; look again at the words the peer writes; if nothing came, `wait(bell)` or poll
// `descriptor(bell)`; then `disarm(bell)` or arm again. The peer's next `announce` or arriving `signal` after the arm
// rings it, once per arm.
//
// Threads: calls that name Bell::data at the receiving thread and those that name Bell::space at the sending thread may
// run at the same time (and with them `put`, `signal`, `announce`): one thread per direction. `ring_own` and
// `peer_gone` may be called from any thread. Nothing here trusts the peer: segment sizes are checked when connecting,
// offsets by the caller's own arithmetic.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "arch/barrier.hpp"
#include "layout/bell_page.hpp"
#include "memory/exposed.hpp"
#include "memory/shared_memory.hpp"

namespace wherry::fabric {

enum class Bell : std::uint8_t { data = 0, space = 1 };
inline constexpr std::array<Bell, 2> kBells{Bell::data, Bell::space};
constexpr std::size_t index(Bell bell) { return static_cast<std::size_t>(bell); }

/// The few bytes of its own that each side tells the other while connecting (see StreamGreeting in
/// layout/stream_page.hpp).
using Greeting = std::array<std::byte, 64>;

/// What a side brings into a connection.
struct Offer {
  std::size_t segment_bytes =
      0;  ///< size of the segment: a multiple of the page size, from one page to kMaxSegmentBytes
  /// Null: the fabric allocates the segment, zeroed, and frees it with the connection. Otherwise memory of the
  /// caller's, page-aligned, private and writable: the peer reaches it from now on, its content is kept, and it stays
  /// the caller's: it must outlive the connection and is usable memory after it.
  std::byte* memory = nullptr;
  Greeting greeting{};
  /// Memory that this side shows to the peer, for reading only; the same may be shown on any number of connections of
  /// the fabric whose share() made it. Null: none.
  std::shared_ptr<memory::SharedMemory> shared = nullptr;
  /// The peer may reach memory that this side exposes (Connection::expose).
  bool exposes = false;
  /// Without bells this side cannot sleep on the connection (arm, wait, descriptor and ring_own are not for it), and
  /// saves their descriptors: for callers that are woken by other means.
  bool bells = true;
  /// The segment is to share its first page with what the fabric keeps beside it: one page less of each side, for those
  /// that have very many connections. It then begins at a multiple of a cache line, and may have up to a page less than
  /// `segment_bytes`. Not with `memory`.
  bool compact = false;
};

inline constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 40;

using Deadline = std::optional<std::chrono::steady_clock::time_point>;  ///< empty: for ever

enum class Wake : std::uint8_t {
  rung,     ///< the bell was rung (and is silent again)
  gone,     ///< the peer closed or died; everything it had published before is visible
  timeout,  ///< the deadline passed
};

/// One end of an established connection. Destroying it is what death is: the peer notices, puts not yet complete are
/// dropped; `flush` first to leave in order. The peer's segment is unreachable afterwards, the own one freed if the
/// fabric allocated it.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// The own segment. Lives as long as the connection (or the caller's memory).
  [[nodiscard]] virtual std::span<std::byte> segment() const = 0;
  /// The peer's segment where this process can load and store it, else null.
  [[nodiscard]] virtual std::byte* map() const { return nullptr; }
  /// Bytes of the peer's segment.
  [[nodiscard]] virtual std::size_t remote_bytes() const = 0;

  /// What the peer shows (its Offer::shared), mapped for reading only; empty if it shows nothing. Stays readable as
  /// long as this connection exists, whatever becomes of the peer.
  [[nodiscard]] virtual std::span<const std::byte> shown() const { return {}; }

  /// Starts to copy `source` to `offset` in the peer's segment. Returns how many bytes it took, a prefix; fewer than
  /// asked for when its queue is short of room, 0 only when the connection is dead. The bytes taken must stay unchanged
  /// until the peer is known to have seen them (a later word of the peer's says so) or `flush` returned. Range outside
  /// the segment: nothing is taken. A load/store fabric may learn of a death only by `wait` or `peer_gone`; until then
  /// it takes what nobody will read. May block for the fabric's own queue, never for the peer's program.
  virtual std::size_t put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Starts to copy from `offset` in the peer's segment; complete when `flush` returned true. False: out of range, or
  /// dead.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Whether this end may ask for `read_private` and `write_private`: the kernel lets this process reach the peer's
  /// memory. Costs a system call the first time, then nothing; the answer can change to false at any time.
  virtual bool reaches_private_memory() { return false; }
  /// Once that is true: whether the process that would be reached at this moment is the peer, and not another that has
  /// its number, nor a program that it has become. Costs a system call. To be asked before its memory is written.
  virtual bool recognises_peer() { return false; }
  /// Copies from memory of the peer's process that was never offered, where the peer said it is (in its own addresses).
  /// Blocks for the copy, not for the peer's program, which must keep that memory as it is meanwhile. Returns how many
  /// bytes, a prefix; fewer than asked for when the kernel refuses, the peer has no memory there, or it is gone.
  virtual std::size_t read_private(std::span<std::byte> destination, std::uint64_t address) {
    static_cast<void>(destination), static_cast<void>(address);
    return 0;
  }
  /// The other way round: copies to where the peer said that it wants it.
  virtual std::size_t write_private(std::uint64_t address, std::span<const std::byte> source) {
    static_cast<void>(address), static_cast<void>(source);
    return 0;
  }
  /// Exposes `memory`, whole pages that the caller already has and keeps; peers reach it by keys that the layer above
  /// tells them. The same memory may be exposed any number of times, and is one and the same. The caller may free it at
  /// any time: the exposed pages live on. Other threads must not write it during this call. Throws Error: ENOTSUP if
  /// the offer did not say so, or the fabric cannot; EINVAL; EFAULT if some of it is not there; ENOMEM. From any
  /// thread.
  virtual std::shared_ptr<memory::Exposed> expose(std::span<std::byte> memory);
  /// What the peer has exposed as `key`, and of that the first `bytes`. Null, and an errno value: ENXIO if it has
  /// exposed nothing like that on this connection. Costs a mapping, perhaps; from any thread.
  virtual std::shared_ptr<memory::Reached> reach(const memory::Key& key, std::size_t bytes, int& error);
  /// Stores `value` in the aligned word at `offset` in the peer's segment, visible only after all earlier puts and
  /// signals of this connection, made by the same thread or by one that handed the connection over (what happened
  /// before, as C++ has it); then rings `bell` if the peer armed it. False: out of range, unaligned, or dead.
  virtual bool signal(std::uint64_t offset, std::uint64_t value, Bell bell) = 0;
  /// Blocks until every earlier put, get and signal is complete. Waits for the fabric, never for the peer's program.
  /// False: the connection died before.
  virtual bool flush() = 0;

  /// Load/store form only: call after the store that publishes something for the peer's `bell`.
  /// Returns true if the peer slept and was rung (one system call), false if it is awake (none).
  bool announce(Bell bell) {
    return announce(bell, [] { return true; });
  }
  /// The same, but whether a peer that sleeps is rung is up to `worth_waking()`, which is asked when it is known to
  /// sleep. Whoever says no owes the peer another announcement.
  template <class Worth>
  bool announce(Bell bell, Worth&& worth_waking) {
    auto& door = doors_[index(bell)];
    if (door.fenced) {
      arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
    } else {
      arch::publish_then_look_unfenced();  // SLEEP: pairs with the interrupt in arm()
    }
    const std::uint64_t epoch = door.sleeper->load(std::memory_order_acquire);  // SLEEP
    if (epoch != door.seen) return ((epoch & 1) == 0 || worth_waking()) && answer(bell, epoch);
    if (++door.quiet == door.patience) drop_fence(door);
    return false;
  }

  /// Says that this side is about to sleep on `bell`. Full fence: what is looked at afterwards is newer than the
  /// announcement. Silences the bell first, so a wake-up from before cannot be taken for a new one.
  virtual void arm(Bell bell) = 0;
  /// Says that this side is awake. The bell may still be rung once by a peer that had not seen it.
  virtual void disarm(Bell bell) = 0;
  /// Makes the bell silent. True if it was ringing: the ring of the last arm may be used up, arm again before sleeping.
  virtual bool silence(Bell bell) = 0;
  /// Sleeps until `bell` is rung, the peer is gone, or the deadline passed. Only on an armed bell.
  virtual Wake wait(Bell bell, Deadline deadline) = 0;
  /// Readable while `bell` is rung or the peer is gone. Throws Error(EMFILE ...) if it is made here, at the first call.
  /// Owned by the connection.
  virtual int descriptor(Bell bell) = 0;
  /// Rings a bell of this side's own: `wait` returns and the descriptor is readable. From any thread.
  virtual void ring_own(Bell bell) = 0;

  /// When and on which CPU the peer last rang `bell`, as it says: to learn from, not to rely on. None: it has not rung
  /// yet, or the fabric does not tell.
  struct Ring {
    std::uint64_t ns;  ///< of CLOCK_MONOTONIC
    std::uint64_t cpu;
  };
  [[nodiscard]] std::optional<Ring> last_ring(Bell bell) const {
    const layout::Publisher* heard = doors_[index(bell)].heard;
    const std::uint64_t ns = heard == nullptr ? 0 : heard->rung_ns.load(std::memory_order_relaxed);
    if (ns == 0) return std::nullopt;
    return Ring{ns, heard->rung_on.load(std::memory_order_relaxed)};
  }

  /// True once the peer has closed or died. Costs a system call; cheap once true. Everything the peer had published is
  /// visible before it returns true.
  virtual bool peer_gone() = 0;

  [[nodiscard]] virtual const Peer& peer() const = 0;
  [[nodiscard]] virtual const Greeting& peer_greeting() const = 0;

 protected:
  /// Rings a bell of the peer's. Never blocks. False: the kernel has no memory for it, try again later.
  virtual bool ring(Bell bell) = 0;

  /// What is behind a bell on a load/store fabric. All but the pointers belongs to the announcing thread.
  struct alignas(64) Door {
    const layout::Word* sleeper = nullptr;     ///< whether the peer sleeps: in this side's own bell page
    const layout::Publisher* heard = nullptr;  ///< what the peer tells of its publishing: there too
    layout::Publisher* told = nullptr;         ///< what this side tells of its own: in the peer's
    std::uint64_t seen = 0;                    ///< the sleeper's word when it last changed: a sleep is rung once
    std::uint64_t quiet = 0;                   ///< announcements since then
    std::uint64_t patience = UINT64_MAX;       ///< after so many the fence is dropped
    bool fenced = true;
  };
  std::array<Door, 2> doors_;

  /// For a load/store fabric, before anything is announced.
  /// @param unfenced  both sides take part in interrupts, and arm() ends with fence_of_arm()
  void open_doors(const layout::BellPage& own, layout::BellPage& peers, bool unfenced);
  /// What arm() does after the announcement, given the peer's word about how it publishes for this bell.
  static void fence_of_arm(const layout::Word& publisher);

  /// For a decorator: a door through which it announces in place of the connection it wraps, and a ring through that
  /// connection.
  static Door door_of(const Connection& wrapped, Bell bell) { return wrapped.doors_[index(bell)]; }
  static bool ring_through(Connection& wrapped, Bell bell) { return wrapped.ring(bell); }

 private:
  bool answer(Bell bell, std::uint64_t epoch);
  static void drop_fence(Door& door);
};

/// A port that is listened on. Destroying it frees the port and refuses the connectors that wait.
class Listener {
 public:
  virtual ~Listener() = default;
  /// Null when no connector waits. Throws Error for what is wrong on this side (out of memory, out of descriptors);
  /// a connector that breaks the handshake is dropped silently.
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
};

/// ECONNREFUSED because the listener's queue is full: worth another attempt.
class QueueFull : public Error {
 public:
  using Error::Error;
};

/// A way to reach peers. Lives for ever; calls from any thread.
class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Throws Error: EADDRINUSE, EADDRNOTAVAIL (another node's address), EACCES, EMFILE.
  virtual std::unique_ptr<Listener> listen(const Address& address) = 0;
  /// Starts to connect; never waits for the peer. Throws Error(ECONNREFUSED) if there is no listener, or QueueFull.
  virtual std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) = 0;
  /// Makes memory to show to peers. Load/store fabrics only: throws Error(ENOTSUP) on others; EINVAL, ENOMEM, EMFILE.
  virtual std::shared_ptr<memory::SharedMemory> share(std::size_t bytes);
};

/// The fabric of that name ("shm", "inproc", "inproc-put", or "faulty+NAME" for a fabric wrapped in faults).
/// Throws Error(EINVAL) that lists the fabrics built in.
Fabric& find(std::string_view name);
/// The fabric an address names, else the configured one (WHERRY_FABRIC).
Fabric& find(const Address& address);
/// Starts to connect, and again while the listener's queue is full: sleeps in between, until the deadline at most.
std::unique_ptr<Connecting> connect_by(Fabric& fabric, const Address& address, const Offer& offer, Deadline deadline);
/// Names of all fabrics built in.
std::span<const std::string> names();

}  // namespace wherry::fabric
