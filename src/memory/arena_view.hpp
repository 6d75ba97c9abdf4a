// SPDX-License-Identifier: Apache-2.0
// An arena as this process maps it: its own, or a peer's. An arena (arena.hpp) is one enormous sparse memfd that holds
// all that a process exposes. It is mapped in chunks, so that a thousand small windows cost one mapping.
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
/// Chunks that a process maps at most, of all arenas together: mappings are scarce (vm.max_map_count is 65530), and the
/// program needs some too. Past it peers' memory is reached by system calls.
inline constexpr std::size_t kMostArenaChunks = 16384;

/// What the second word of a RemoteKey says about the first. The arena's number follows in the upper bits, so that the
/// key of a process's child, which has another arena, is not taken for its parent's.
enum class KeyKind : std::uint64_t { none = 0, arena = 1, address = 2 };
constexpr KeyKind kind_of(const RemoteKey& key) { return static_cast<KeyKind>(key.kind & 3); }

/// Held while views are mapped, and while this process forks: a child then finds them as they should be.
std::mutex& views_mutex();

/// Maps the pages of a view, up to a bound: a large window of which little is used costs little.
void prepare_view(std::byte* start, std::size_t bytes) noexcept;

class ArenaView : public std::enable_shared_from_this<ArenaView> {
 public:
  /// The most that is brought in when it is mapped.
  static constexpr std::size_t kMostAhead = std::size_t{64} << 20;

  /// Chunks that are mapped. They stay as long as this object, whatever becomes of the owner: an arena cannot shrink.
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

  /// A range of the arena in this process; `start` is null if it could not be mapped.
  struct Range {
    std::shared_ptr<Chunks> chunks;
    std::byte* start = nullptr;
  };

  ArenaView(UniqueFd memfd, std::uint64_t bytes);

  [[nodiscard]] int descriptor() const { return memfd_.get(); }
  [[nodiscard]] const FileIdentity& file() const { return file_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Maps what is not mapped yet. From any thread.
  Range map(std::uint64_t place, std::size_t bytes);
  /// Maps a range at an address of the caller's, and brings its pages in unless they are too many. Returns 0 or an
  /// errno value.
  [[nodiscard]] int map_at(std::uint64_t place, std::size_t bytes, int protection, std::byte* where) const;
  /// All that map() has mapped and that is in use, by address. With views_mutex() held.
  [[nodiscard]] std::vector<std::span<const std::byte>> mapped() const;
  /// The key of memory in this arena, or of the address of memory of the arena's process.
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

/// The view of the arena behind a descriptor, which a peer may have sent: one per arena, not per connection. Null, and
/// an errno value, for what could be pulled from under us: anything but a memfd of exactly that size, sealed against
/// shrinking.
std::shared_ptr<ArenaView> view_arena(UniqueFd memfd, std::uint64_t bytes, int& error);

/// Whether it is an arena that this process has a view of: then no access to a mapping of it finds the file shrunk.
bool is_known_arena(const FileIdentity& file);

}  // namespace wherry::memory
