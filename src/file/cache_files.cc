// SPDX-License-Identifier: Apache-2.0
//
// The table of files: places, stamps, and what drops blocks. The numbers are those of cache.cc's invariants.
#include <time.h>

#include "arch/barrier.hpp"
#include "file/cache.hpp"

namespace wherry::file {
namespace {

using layout::kFileBlock;
using layout::kFileNeighbours;
using layout::kFileSlots;
using layout::kFileWays;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDropOneByOne = 4096;  // blocks, 64 MiB: a change of more drops the whole file

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

/// What a place says of itself, if it is a file's: life and born as they were while device and inode were read.
struct Seen {
  std::uint64_t life = 0;  // 0: no file's
  std::uint64_t born = 0;
  Key key;
};

Seen look_at(const layout::FileSlot& slot) {
  Seen seen;
  const std::uint64_t life = slot.life.load(std::memory_order_acquire);  // FILE-LIFE: the key
  seen.born = slot.born.load(std::memory_order_relaxed);
  // What was born in a later epoch is a place that was given away just now.
  if (file_kind_of(life) != FileKind::ready || seen.born > epoch_of(life)) return {};
  seen.key = Key(slot.device.load(std::memory_order_relaxed), slot.inode.load(std::memory_order_relaxed));
  std::atomic_thread_fence(std::memory_order_acquire);  // FILE-KEY acquire: if the key is new, so is the life
  if (file_kind_of(slot.life.load(std::memory_order_acquire)) != FileKind::ready) return {};  // FILE-LIFE: born
  if (slot.born.load(std::memory_order_relaxed) != seen.born) return {};
  seen.life = life;
  return seen;
}

void touch(layout::FileSlot& slot) {
  if (slot.touched.load(std::memory_order_relaxed) == 0) slot.touched.store(1, std::memory_order_relaxed);
}

/// Begins a new epoch, which drops all blocks of `life`. False: another process did, which serves as well.
bool end_epoch(layout::FileSlot& slot, std::uint64_t life) {
  // FILE-LIFE: a stamp stored from here on is not older (8)
  return slot.life.compare_exchange_strong(life, next_life(life), std::memory_order_acq_rel);
}

/// A place of the group that is free, or was not used lately.
std::uint32_t choose(const Segment& segment, std::uint32_t group) {
  for (const bool again : {false, true}) {
    for (std::uint32_t slot = group; slot < group + kFileNeighbours; ++slot) {
      const FileKind kind = file_kind_of(segment.file(slot).life.load(std::memory_order_relaxed));
      if (kind == FileKind::empty) return slot;
      if (kind != FileKind::ready) continue;
      if (segment.file(slot).touched.exchange(0, std::memory_order_relaxed) == 0 || again) return slot;
    }
  }
  return UINT32_MAX;
}

}  // namespace

std::uint32_t Cache::group_of(const Key& key) noexcept {
  return static_cast<std::uint32_t>(mixed(key.device, key.inode) % (kFileSlots / kFileNeighbours) * kFileNeighbours);
}

std::uint64_t Stamp::now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds(now);
}

Stamp::Stamp(const struct ::stat& status, std::uint64_t now_before, Writers writers) noexcept
    : value_(
          mixed(mixed(mixed(status.st_dev, status.st_ino), static_cast<std::uint64_t>(status.st_size)),
                mixed(nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)) + (writers == Writers::none ? 0 : 1)) |
          1) {
  // No call sets a file's ctime. Where its nanoseconds are 0 the file system may count whole seconds.
  const std::uint64_t changed = nanoseconds(status.st_ctim);
  std::uint64_t least = status.st_ctim.tv_nsec == 0 ? 2 * kSecond : kSettledAfter;
  if (writers == Writers::perhaps) least = std::max(least, kSettledWithWriters);
  settled_ = status.st_ctim.tv_sec >= 0 && now_before > changed && now_before - changed > least;
}

std::uint64_t Cache::name_of(const File& file) const noexcept {
  if (file.slot >= kFileSlots) return 0;
  const layout::FileSlot& slot = segment_.file(file.slot);
  const std::uint64_t life = slot.life.load(std::memory_order_acquire);  // FILE-LIFE: born
  if (file_kind_of(life) != FileKind::ready || slot.born.load(std::memory_order_relaxed) != file.born) return 0;
  return file_name_of(life, file.slot);
}

bool Cache::knows(const Key& key) const noexcept {
  if (!attached()) return false;
  const std::uint32_t group = group_of(key);
  for (std::uint32_t slot = group; slot < group + kFileNeighbours; ++slot) {
    const Seen seen = look_at(segment_.file(slot));
    if (seen.life != 0 && seen.key == key) return true;
  }
  return false;
}

File Cache::open(const Key& key) noexcept {
  if (!attached()) return {};
  const std::uint32_t group = group_of(key);
  for (std::uint32_t slot = group; slot < group + kFileNeighbours; ++slot) {
    // Most files that are changed have no place: one that gets it now sees the note, as a fill does (5).
    if (segment_.file(slot).inode.load(std::memory_order_relaxed) != key.inode) continue;
    const Seen seen = look_at(segment_.file(slot));
    if (seen.life == 0 || seen.key != key) continue;
    touch(segment_.file(slot));
    return {.slot = slot, .born = seen.born};
  }
  return claim(key, group);
}

File Cache::claim(const Key& key, std::uint32_t group) noexcept {
  const std::uint64_t owner = registered();
  if (owner != 0) note_use(segment_.client(owner));
  const std::uint32_t chosen = owner == 0 ? UINT32_MAX : choose(segment_, group);
  if (chosen == UINT32_MAX) return {};
  layout::FileSlot& slot = segment_.file(chosen);
  std::uint64_t life = slot.life.load(std::memory_order_relaxed);
  const FileKind kind = file_kind_of(life);
  if (kind != FileKind::empty && kind != FileKind::ready) return {};
  const std::uint64_t next = next_life(life);
  if (file_kind_of(next) == FileKind::retired) return {};
  const std::uint64_t epoch = epoch_of(next);
  std::uint64_t busy = life_of(FileKind::busy, owner, epoch);
  // FILE-LIFE: what the last owner stored is older than what is stored now.
  if (!slot.life.compare_exchange_strong(life, busy, std::memory_order_acq_rel)) return {};
  std::atomic_thread_fence(std::memory_order_release);  // FILE-KEY release: the life, before the key
  slot.born.store(epoch, std::memory_order_relaxed);
  slot.device.store(key.device, std::memory_order_relaxed);
  slot.inode.store(key.inode, std::memory_order_relaxed);
  slot.stamp.store(0, std::memory_order_relaxed);
  slot.changed.store(0, std::memory_order_relaxed);
  slot.seen.store(seen_now(key), std::memory_order_release);  // FILE-SEEN: the key, and a new epoch
  slot.touched.store(1, std::memory_order_relaxed);
  // FILE-LIFE release: the key
  const bool kept = slot.life.compare_exchange_strong(busy, life_of(FileKind::ready, 0, epoch),
                                                      std::memory_order_release, std::memory_order_relaxed);
  return kept ? File{.slot = chosen, .born = epoch} : File{};
}

Validity Cache::validate(const File& file, const Stamp& stamp) noexcept {
  if (!attached()) return Validity::unsettled;
  if (file.slot >= kFileSlots) return Validity::gone;
  layout::FileSlot& slot = segment_.file(file.slot);
  const Seen seen = look_at(slot);
  if (seen.life == 0 || seen.born != file.born) return Validity::gone;
  touch(slot);
  const std::uint64_t before = slot.stamp.load(std::memory_order_acquire);  // FILE-STAMP: the epoch that followed
  if (before != stamp.value() && (before != 0 || stamp.settled())) {
    end_epoch(slot, seen.life);
    count(counts_here().drop_alls);
    if (stamp.settled()) slot.changed.store(0, std::memory_order_relaxed);
    slot.stamp.store(stamp.settled() ? stamp.value() : 0, std::memory_order_release);  // FILE-STAMP: the new epoch (8)
  }
  const bool known = before == stamp.value() || stamp.settled();
  if (!known) return Validity::unsettled;
  return is_marked(seen.key) ? Validity::has_writer : Validity::usable;
}

bool Cache::has_stamp(const File& file, const Stamp& stamp) const noexcept {
  return attached() && file.slot < kFileSlots &&
         segment_.file(file.slot).stamp.load(std::memory_order_relaxed) == stamp.value();
}

bool Cache::was_changed_here(const File& file) const noexcept {
  return attached() && file.slot < kFileSlots && segment_.file(file.slot).changed.load(std::memory_order_relaxed) != 0;
}

void Cache::drop(const Key& key, std::uint64_t offset, std::uint64_t length) noexcept {
  if (!attached() || length == 0) return;
  const std::uint64_t first = offset / kFileBlock;
  const std::uint64_t last = length - 1 > UINT64_MAX - offset ? kLastBlock : (offset + length - 1) / kFileBlock;
  const std::uint32_t group = group_of(key);
  for (std::uint32_t slot = group; slot < group + kFileNeighbours; ++slot) {
    // Most files that are changed have no place: one that gets it now sees the note, as a fill does (5).
    if (segment_.file(slot).inode.load(std::memory_order_relaxed) != key.inode) continue;
    const Seen seen = look_at(segment_.file(slot));
    if (seen.life == 0 || seen.key != key) continue;
    layout::FileSlot& place = segment_.file(slot);
    if (place.changed.load(std::memory_order_relaxed) == 0) place.changed.store(1, std::memory_order_relaxed);
    // A fill of this epoch that is not seen here sees the note (5).
    if (place.filled.load(std::memory_order_relaxed) < epoch_of(seen.life)) continue;
    drop_blocks(slot, seen.life, first, last);
  }
}

void Cache::drop_all(const Key& key) noexcept { drop(key, 0, UINT64_MAX); }

/// Of a file that has its place still. False: it has not.
bool Cache::drop_epoch(const File& file, const Key& key) noexcept {
  const Seen seen = look_at(segment_.file(file.slot));
  if (seen.life == 0 || seen.born != file.born || seen.key != key) return false;
  end_epoch(segment_.file(file.slot), seen.life);
  count(counts_here().drop_alls);
  return true;
}

/// @param life  as it was when the place was seen to be the file's
void Cache::drop_blocks(std::uint32_t slot, std::uint64_t life, std::uint64_t first, std::uint64_t last) noexcept {
  if (last - first >= kDropOneByOne || last - first >= segment_.sets()) {
    end_epoch(segment_.file(slot), life);
    return count(counts_here().drop_alls);
  }
  const std::uint64_t name = file_name_of(life, slot);
  for (std::uint64_t number = first; number <= last; ++number) {
    drop_block(segment_.set_of(slot, number), name, number);
  }
}

/// In each way that has it: `valid` becomes absent, `filling` becomes cancelled. A block can be in more than one.
void Cache::drop_block(std::uint64_t set_index, std::uint64_t name, std::uint64_t number) noexcept {
  layout::FileSet& set = segment_.set(set_index);
  for (std::size_t way = 0; way < kFileWays; ++way) {
    for (int tries = 0;; ++tries) {
      if (tries == kTries) return turn_off(segment_);  // a process breaks the rules of the state: the cache is off
      if (set.number[way].load(std::memory_order_relaxed) != number) break;
      std::uint64_t state = set.state[way].load(std::memory_order_acquire);  // FILE-BLOCK: the tag
      const FileBlockKind kind = kind_of(state);
      if (kind != FileBlockKind::valid && kind != FileBlockKind::filling) break;
      if (set.file[way].load(std::memory_order_relaxed) != name) break;
      const bool valid = kind == FileBlockKind::valid;
      const std::uint64_t dropped =
          next_state(state, valid ? FileBlockKind::absent : FileBlockKind::cancelled, 0, valid ? 0 : owner_of(state));
      if (!set.state[way].compare_exchange_strong(state, dropped, std::memory_order_relaxed)) continue;
      count(counts_here().drops);
      break;
    }
  }
}

void drop_files(const Segment& segment) noexcept {
  for (std::uint32_t i = 0; i < kFileSlots; ++i) {
    layout::FileSlot& slot = segment.file(i);
    const std::uint64_t life = slot.life.load(std::memory_order_acquire);  // FILE-LIFE: what is reachable in it
    if (file_kind_of(life) == FileKind::ready) end_epoch(slot, life);
  }
}

void turn_off(const Segment& segment) noexcept {
  segment.header().off.store(1, std::memory_order_relaxed);
  arch::publish_then_look();  // FILE-FILL
  drop_files(segment);
}

}  // namespace wherry::file
