// SPDX-License-Identifier: Apache-2.0
// This process's mapping of an arena, its own or a peer's. An arena (arena.hpp) is one sparse memfd of up to 4 EiB with
// all memory that a process exposes. It is mapped in chunks, so that a thousand small windows cost one mapping.
// May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "memory/address_map.hpp"
#include "memory/region.hpp"

namespace wherry::memory {

inline constexpr std::uint64_t kArenaChunk = std::uint64_t{64} << 20;
/// Most chunks that a process maps, of all arenas together. Mappings are scarce (vm.max_map_count is 65530), and the
/// program needs some too. Beyond this limit, peers' memory is accessed by system calls.
inline constexpr std::size_t kMostArenaChunks = 16384;

/// The meaning of RemoteKey::place, in the low 2 bits of RemoteKey::kind. The upper bits are the inode of the arena: so
/// the key of a forked child, which has another arena, is not mistaken for its parent's.
enum class KeyKind : std::uint64_t { none = 0, arena = 1, address = 2 };
constexpr KeyKind kind_of(const RemoteKey& key) { return static_cast<KeyKind>(key.kind & 3); }

/// Held while views are mapped, and while this process forks, so that a child finds them in a consistent state.
std::mutex& views_mutex();

/// Prefaults the first ArenaView::kMostAhead bytes of a view. The limit keeps a large, hardly used window cheap.
void prepare_view(std::byte* start, std::size_t bytes) noexcept;

class ArenaView : public std::enable_shared_from_this<ArenaView> {
 public:
  /// Most bytes that are prefaulted when memory is mapped.
  static constexpr std::size_t kMostAhead = std::size_t{64} << 20;

  /// Consecutive mapped chunks. Unmapped with this object. They outlive the owner's process: an arena cannot shrink.
  class Chunks {
   public:
    Chunks(std::byte* start, std::size_t bytes) : bytes_(start, bytes) {}
    Chunks(const Chunks&) = delete;
    Chunks& operator=(const Chunks&) = delete;
    ~Chunks();
    [[nodiscard]] std::byte* start() const { return bytes_.data(); }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

   private:
    std::span<std::byte> bytes_;
  };

  /// A range of the arena in this process. `start` is null if it could not be mapped.
  struct Range {
    std::shared_ptr<Chunks> chunks;
    std::byte* start = nullptr;
  };

  ArenaView(UniqueFd memfd, std::uint64_t bytes);

  [[nodiscard]] int descriptor() const { return memfd_.get(); }
  [[nodiscard]] const FileIdentity& file() const { return file_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Returns the range; maps its chunks if they are not mapped yet. From any thread.
  Range map(std::uint64_t place, std::size_t bytes);
  /// Maps a range at an address that the caller owns, and prefaults it unless it is larger than kMostAhead. Returns 0
  /// or an errno value.
  [[nodiscard]] int map_at(std::uint64_t place, std::size_t bytes, int protection, std::byte* where) const;
  /// Returns all chunks in use that map() has mapped, by address. With views_mutex() held.
  [[nodiscard]] std::vector<std::span<const std::byte>> mapped() const;
  /// Returns the key of memory at a place of this arena, or at an address of its process.
  [[nodiscard]] RemoteKey key_of(std::uint64_t place, KeyKind kind) const {
    return {place, (file_.inode << 2) | static_cast<std::uint64_t>(kind)};
  }
  /// Whether a key is well formed for this arena's process.
  [[nodiscard]] bool may_hold(const RemoteKey& key, std::size_t bytes) const;
  [[nodiscard]] bool holds(std::uint64_t place, std::size_t bytes) const {
    return bytes <= bytes_ && place <= bytes_ - bytes;
  }

 private:
  using ChunkRange = std::pair<std::uint64_t, std::uint64_t>;  // first and last

  std::shared_ptr<Chunks> find_or_map(const ChunkRange& wanted);

  const UniqueFd memfd_;
  const FileIdentity file_;
  const std::uint64_t bytes_;
  std::map<ChunkRange, std::weak_ptr<Chunks>> mapped_;  // guarded by views_mutex()
};

/// Returns the view of the arena behind a descriptor, which a peer may have sent. There is one per arena, shared by all
/// connections. Null, and EPROTO: it is not a memfd of exactly that size that is sealed against resizing, so its memory
/// could vanish under a mapping; or the size is not whole chunks.
std::shared_ptr<ArenaView> view_arena(UniqueFd memfd, std::uint64_t bytes, int& error);

/// Whether the file is an arena that this process has a view of. A mapping of it cannot lose its pages: it cannot
/// shrink.
bool is_known_arena(const FileIdentity& file);

}  // namespace wherry::memory
