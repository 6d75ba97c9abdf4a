// SPDX-License-Identifier: Apache-2.0
// Memory that peers may reach at any time without its owner's program, and that outlives the connection if a peer has
// mapped it. It need not have been made for that: it is memory that the caller already has.
// May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace wherry::memory {

/// Names exposed memory towards the peers of the process that owns it. Travels in shared memory, so what a peer says is
/// checked where it is used: `Exposure::reach` never leads out of that peer's own memory.
struct RemoteKey {
  std::uint64_t place = 0;
  std::uint64_t kind = 0;
};

/// Memory of this process's while it is exposed. Destroying it ends that: no peer is told, and accesses of peers that
/// reached it before still do no harm.
class LocalRegion {
 public:
  /// Consecutive pieces are the exposed range; each has a key of its own.
  struct Piece {
    std::size_t bytes = 0;
    RemoteKey key;
    std::byte* view = nullptr;  ///< the same bytes in this process
    bool lasting = false;       ///< the view is there as long as this object, even if the caller has freed its memory
  };

  LocalRegion() = default;
  LocalRegion(const LocalRegion&) = delete;
  LocalRegion& operator=(const LocalRegion&) = delete;
  virtual ~LocalRegion() = default;

  [[nodiscard]] virtual std::span<const Piece> pieces() const = 0;
  /// To be called before the views are used: their pages are mapped when it is called first. From any thread.
  virtual void prepare() noexcept {}
  /// A peer has mapped it: its pages stay what they are for as long as this process lives.
  virtual void keep() noexcept = 0;
};

/// A peer's exposed memory as it is reached over one connection, which it must not outlive. Any thread.
class RemoteRegion {
 public:
  RemoteRegion() = default;
  RemoteRegion(const RemoteRegion&) = delete;
  RemoteRegion& operator=(const RemoteRegion&) = delete;
  virtual ~RemoteRegion() = default;

  /// The memory where this process can load and store it, else null.
  [[nodiscard]] virtual std::byte* map() const { return nullptr; }
  /// False: on a network whose queue is full. `put` would take more all the same; its callers wait before.
  virtual bool has_room() { return true; }
  /// Copies all of `source` to `offset`. Where there is no map it may complete late, as Connection::put does; the
  /// source must then stay until Connection::flush. False: the peer has no such memory any more, or is gone.
  virtual bool put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Copies from `offset`; complete when Connection::flush succeeded.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Stores the aligned word at `offset`, visible only after every earlier put of this connection's.
  virtual bool signal(std::uint64_t offset, std::uint64_t value) = 0;
  /// Maps a range of it at `where`, in place of what is there. The mapping outlives the connection and the peer; it is
  /// the caller's to unmap. Returns 0 or an errno value: ENOTSUP where this memory cannot be mapped.
  virtual int map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where);
};

}  // namespace wherry::memory
