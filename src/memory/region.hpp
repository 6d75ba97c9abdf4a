// SPDX-License-Identifier: Apache-2.0
// Exposed memory: memory of a program that peers may access at any time without that program's help. It may be any
// memory that the program already has. If a peer has mapped it, the mapping outlives the connection.
// May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace wherry::memory {

/// Names exposed memory to the peers of its process. A key travels in shared memory, so it is checked where it is used:
/// `Exposure::reach` never leads out of the memory of the peer that sent the key.
struct RemoteKey {
  std::uint64_t place = 0;
  std::uint64_t kind = 0;
};

/// Memory of this process that is exposed as long as this object exists. Peers are not notified of its end. Their later
/// accesses do no harm.
class LocalRegion {
 public:
  /// A part of the exposed memory, with a key of its own. The pieces are consecutive.
  struct Piece {
    std::size_t bytes = 0;
    RemoteKey key;
    std::byte* view = nullptr;  ///< the same bytes in this process
    bool lasting = false;       ///< the view lasts as long as this object, even if the caller unmaps its memory
  };

  LocalRegion() = default;
  LocalRegion(const LocalRegion&) = delete;
  LocalRegion& operator=(const LocalRegion&) = delete;
  virtual ~LocalRegion() = default;

  [[nodiscard]] virtual std::span<const Piece> pieces() const = 0;
  /// Prefaults the views at the first call. Call it before the views are used. From any thread.
  virtual void prepare() noexcept {}
  /// Keeps the pages for the rest of this process's life. To be called when a peer has mapped them.
  virtual void keep() noexcept = 0;
};

/// Exposed memory of a peer, accessed over one connection, which it must not outlive. From any thread.
class RemoteRegion {
 public:
  RemoteRegion() = default;
  RemoteRegion(const RemoteRegion&) = delete;
  RemoteRegion& operator=(const RemoteRegion&) = delete;
  virtual ~RemoteRegion() = default;

  /// Returns the memory if this process can load and store it directly, else null.
  [[nodiscard]] virtual std::byte* map() const { return nullptr; }
  /// False: the queue of the network is full. `put` would still accept more, so callers wait before they call it.
  virtual bool has_room() { return true; }
  /// Copies all of `source` to `offset`. Without a map it may complete later, as Connection::put does; the source must
  /// then stay valid until Connection::flush. False: the peer no longer has this memory, or is gone.
  virtual bool put(std::uint64_t offset, std::span<const std::byte> source) = 0;
  /// Copies from `offset`. Complete after Connection::flush has succeeded.
  virtual bool get(std::span<std::byte> destination, std::uint64_t offset) = 0;
  /// Stores the aligned word at `offset`. It becomes visible after all earlier puts of this connection.
  virtual bool signal(std::uint64_t offset, std::uint64_t value) = 0;
  /// Maps a range of it at `where`, and replaces any mapping there. The new mapping outlives the connection and the
  /// peer. The caller unmaps it. Returns 0 or an errno value: ENOTSUP if this memory cannot be mapped.
  virtual int map_at(std::uint64_t offset, std::size_t bytes, int protection, std::byte* where);
};

}  // namespace wherry::memory
