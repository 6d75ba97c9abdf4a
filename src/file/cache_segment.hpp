// SPDX-License-Identifier: Apache-2.0
// The segment as the sources of the cache see it: no index that comes from shared memory leaves a table, and the words
// that are several things in one are taken apart here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "file/layout/cache.hpp"

namespace wherry::file {

using layout::FileBlockKind;
using layout::FileKind;
using layout::Word;

/// Spreads numbers that differ little over 64 bits (the finalizer of MurmurHash3).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}
constexpr std::uint64_t mixed(std::uint64_t first, std::uint64_t second) {
  return mixed(first + 0x9e3779b97f4a7c15 * mixed(second));
}

// The state of a way.
constexpr FileBlockKind kind_of(std::uint64_t state) { return static_cast<FileBlockKind>(state & 3); }
constexpr std::size_t bytes_of(std::uint64_t state) {
  return std::min<std::size_t>((state >> layout::kFileBytesShift) & 0x7fff, layout::kFileBlock);
}
constexpr std::uint64_t owner_of(std::uint64_t state) { return (state >> layout::kFileOwnerShift) & 0x3fff; }
/// What follows `state`: one version more.
constexpr std::uint64_t next_state(std::uint64_t state, FileBlockKind kind, std::size_t bytes, std::uint64_t owner) {
  const std::uint64_t version = (state >> layout::kFileVersionShift) + 1;
  return version << layout::kFileVersionShift | owner << layout::kFileOwnerShift |
         std::uint64_t{bytes} << layout::kFileBytesShift | static_cast<std::uint64_t>(kind);
}

// The life of a file's place.
constexpr FileKind file_kind_of(std::uint64_t life) { return static_cast<FileKind>(life & 3); }
constexpr std::uint64_t file_owner_of(std::uint64_t life) { return (life >> layout::kFileLifeOwnerShift) & 0x3fff; }
constexpr std::uint64_t epoch_of(std::uint64_t life) { return life >> layout::kFileLifeEpochShift; }
constexpr std::uint64_t life_of(FileKind kind, std::uint64_t owner, std::uint64_t epoch) {
  return epoch << layout::kFileLifeEpochShift | owner << layout::kFileLifeOwnerShift | static_cast<std::uint64_t>(kind);
}
/// What drops all blocks of the file: a new epoch, or, after the last, no file any more.
constexpr std::uint64_t next_life(std::uint64_t life) {
  const std::uint64_t epoch = epoch_of(life) + 1;
  return epoch >= layout::kFileLastEpoch ? life_of(FileKind::retired, 0, layout::kFileLastEpoch)
                                         : life_of(file_kind_of(life), 0, epoch);
}
/// The name of a file in the tags of its blocks: its place in one epoch. Never 0, since epochs begin with 1.
constexpr std::uint64_t file_name_of(std::uint64_t life, std::uint32_t slot) {
  return epoch_of(life) << layout::kFileLifeEpochShift | slot;
}

/// Which block of a file may be cached at all: the last byte of the last one has an offset that fits off_t.
inline constexpr std::uint64_t kLastBlock = (std::uint64_t{1} << 63) / layout::kFileBlock - 1;

class Segment {
 public:
  constexpr Segment() = default;
  /// @param sets  a power of two that was checked against the size of what is mapped
  Segment(std::byte* base, std::uint64_t sets)
      : base_(base), data_(base + layout::file_data_offset(sets)), mask_(sets - 1) {}

  [[nodiscard]] explicit operator bool() const { return base_ != nullptr; }
  [[nodiscard]] std::uint64_t sets() const { return mask_ + 1; }
  [[nodiscard]] std::size_t bytes() const { return layout::file_segment_bytes(sets()); }
  [[nodiscard]] std::byte* base() const { return base_; }

  [[nodiscard]] layout::FileCacheHeader& header() const { return *at<layout::FileCacheHeader>(0, 0); }
  [[nodiscard]] Word& unseen(std::size_t i) const {
    return *at<Word>(layout::kFileUnseen, i % layout::kFileMostUnseen);
  }
  [[nodiscard]] layout::FileClient& client(std::uint64_t number) const {
    return *at<layout::FileClient>(layout::kFileClients, (number - 1) % layout::kFileMostClients);
  }
  [[nodiscard]] layout::FileChange& change(std::size_t i) const {
    return *at<layout::FileChange>(layout::kFileChanges, i % layout::kFileMostChanges);
  }
  [[nodiscard]] layout::FileMarks& marks(std::size_t bucket) const {
    return *at<layout::FileMarks>(layout::kFileMarks, bucket % layout::kFileMarkBuckets);
  }
  [[nodiscard]] layout::FileSlot& file(std::uint32_t slot) const {
    return *at<layout::FileSlot>(layout::kFileFiles, slot % layout::kFileSlots);
  }
  [[nodiscard]] layout::FileSet& set(std::uint64_t i) const {
    return *at<layout::FileSet>(layout::kFileSets, i & mask_);
  }
  /// The large page that a block lies in.
  [[nodiscard]] layout::FileRun& run(std::uint64_t set, std::size_t way) const {
    return run((way % layout::kFileWays * sets() + (set & mask_)) / layout::kFileRunBlocks);
  }
  [[nodiscard]] layout::FileRun& run(std::size_t i) const {
    return *at<layout::FileRun>(layout::file_runs_offset(sets()), i % runs());
  }
  [[nodiscard]] std::size_t runs() const { return layout::file_runs(sets()); }
  [[nodiscard]] std::byte* block(std::uint64_t set, std::size_t way) const {
    return data_ + (way % layout::kFileWays * sets() + (set & mask_)) * layout::kFileBlock;
  }

  /// Consecutive blocks of a file lie in consecutive sets.
  [[nodiscard]] std::uint64_t set_of(std::uint32_t slot, std::uint64_t number) const {
    return (mixed(slot) + number) & mask_;
  }

  /// How far a table has to be looked through: no further than it is long.
  [[nodiscard]] static std::size_t used(const Word& high_water, std::size_t most) {
    return std::min<std::uint64_t>(high_water.load(std::memory_order_relaxed), most);
  }

 private:
  template <class T>
  [[nodiscard]] T* at(std::size_t offset, std::size_t index) const {
    return reinterpret_cast<T*>(base_ + offset) + index;
  }

  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t mask_ = 0;
};

/// Loops over compare-and-swaps that others may win end after so many.
inline constexpr int kTries = 64;

/// Makes a high-water mark at least `least`.
inline void raise(Word& high_water, std::uint64_t least) {
  std::uint64_t now = high_water.load(std::memory_order_relaxed);
  for (int tries = 0; now < least && tries < kTries; ++tries) {
    if (high_water.compare_exchange_strong(now, least, std::memory_order_relaxed)) return;
  }
}

/// A counter of this process. No atomic addition: what two threads count at the same moment may be counted once.
inline void count(Word& counter, std::uint64_t more = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

/// Called before a client owns anything but the note of a change: tells the card to look for what it held once dead.
inline void note_use(layout::FileClient& client) {
  if (client.used.load(std::memory_order_relaxed) == 0) client.used.store(1, std::memory_order_relaxed);
}

/// Owner of the table entries of a process that got no number: what it leaves behind when it dies is never repaired.
inline constexpr std::uint64_t kNobody = 0x3fff;
static_assert(kNobody > layout::kFileMostClients);

/// Maps the first `bytes` of a file, shared and to be written, where a large page may begin. Null: errno says why.
void* map_at_large_page(int fd, std::size_t bytes) noexcept;

/// What process numbers in a segment mean: the inode of /proc/self/ns/pid; 0: not known.
std::uint64_t pid_namespace() noexcept;

/// Drops all blocks of all files.
void drop_files(const Segment& segment) noexcept;
/// Turns the cache off for good: a change could not be noted, or a block not dropped, or the segment was lost.
void turn_off(const Segment& segment) noexcept;

/// Ends everything that a dead process had under way, and frees its number. `leave_marks`: its marks stay (a child
/// that inherited its mappings may not have marked them yet), and its number is not freed.
void repair(const Segment& segment, std::uint64_t client, bool leave_marks) noexcept;

}  // namespace wherry::file
