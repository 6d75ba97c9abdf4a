// SPDX-License-Identifier: Apache-2.0
//
// Reads and fills. What every process keeps, so that no read gives a byte older than the last completed change:
//
//  1. A block's memory is stored into only by the owner of its way, between the compare-and-swap that makes the way
//     `filling` and the one that ends `filling` or `cancelled`. Both are the owner's; if it is dead, the card's (9).
//     So a fill that was cancelled cannot store its old bytes into a later one.
//  2. The state of a way changes by compare-and-swap only, and each change makes its version one more. The tag (file,
//     number) changes only while the way is `filling`, by its owner.
//  3. A reader takes bytes only from a way that is `valid`, whose tag is the wanted one, and whose state is the same
//     word after the copy as before: then by 1 and 2 no store fell between.
//  4. A change of a file is noted first, then the blocks are dropped (`valid` becomes absent, `filling` becomes
//     `cancelled`), then the kernel makes it; the note stays until the kernel has made it.
//  5. A filler makes its tag visible, and that something of this epoch is filled, then looks for notes, and reads from
//     the kernel only if there are none. Between the first two steps of 4, of which the second is left out if nothing
//     of this epoch is filled, and between these two, stands a full barrier (FILE-FILL): a filler that does not see the
//     note is seen by the drop. So no block becomes `valid` with bytes from before a change that has ended.
//  6. The epoch of a file's place only grows, and is part of the tags: a new epoch drops all blocks at once, and fills
//     under way with them. A place that reaches the last epoch is never used again.
//  7. Device and inode of a place change only while it is `busy`, by its owner. Two places may be one file's: a drop
//     covers every place that is that file's.
//  8. The stamp of a place is stored after the new epoch: what is reachable was read from the kernel after a stamp was
//     taken that no later change leaves again. Stamp 0 proves nothing: no fills.
//  9. What a dead process held stays as it was, out of the cache, until the card repairs it, which it does when the
//     kernel says that no thread of that process is left.
// 10. Changes by other cards are counted (cache_revocations.cc). Nothing is taken from the blocks of a file whose count
//     is not the one stored beside it, which is stored after the epoch that drops them.
//
// Words that other processes write are not trusted: each is read once, and every index is cut to its table
// (cache_segment.hpp). Loops over others' compare-and-swaps end after kTries.
#include "file/cache.hpp"

#include <cassert>
#include <cstring>
#include <utility>

#include "arch/barrier.hpp"

namespace wherry::file {
namespace {

using layout::kFileBlock;
using layout::kFileWays;

constexpr unsigned kRounds = 2 * kFileWays + 1;  // of the hand: by then every way was passed over once

#if WHERRY_THREAD_SANITIZER
/// A race by design (3): the bytes are thrown away if they changed. No call, which would be looked at.
__attribute__((no_sanitize("thread"))) void copy_racing(std::byte* to, const std::byte* from, std::size_t bytes) {
  const volatile std::byte* source = from;
  for (std::size_t i = 0; i < bytes; ++i) to[i] = source[i];
}
#else
void copy_racing(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
#endif

bool is_tagged(const layout::FileSet& set, std::size_t way, std::uint64_t name, std::uint64_t number) {
  return set.number[way].load(std::memory_order_relaxed) == number &&
         set.file[way].load(std::memory_order_relaxed) == name;
}

/// Whether a block was refused here before; says that it was, for the next time.
bool was_refused(layout::FileSet& set, std::uint64_t name, std::uint64_t number) {
  const std::uint64_t ghost = mixed(name, number) | 1;
  Word& place = set.ghosts[ghost / 2 % layout::kFileGhosts];
  const bool refused = place.load(std::memory_order_relaxed) == ghost;
  place.store(refused ? 0 : ghost, std::memory_order_relaxed);
  return refused;
}

struct Taken {
  std::size_t way = kFileWays;  // kFileWays: none
  std::uint64_t state = 0;
};

/// Makes a way `filling`: one that is absent, else the first that was not read since the hand passed it.
Taken take_way(layout::FileSet& set, std::uint64_t owner) {
  for (unsigned round = 0; round < kFileWays + kRounds; ++round) {
    const bool absent_only = round < kFileWays;
    const std::size_t way = absent_only ? round : set.hand.fetch_add(1, std::memory_order_relaxed) % kFileWays;
    std::uint64_t state = set.state[way].load(std::memory_order_relaxed);
    const FileBlockKind kind = kind_of(state);
    if (kind != FileBlockKind::absent && (absent_only || kind != FileBlockKind::valid)) continue;
    if (kind == FileBlockKind::valid && set.touched[way].exchange(0, std::memory_order_relaxed) != 0) continue;
    const std::uint64_t filling = next_state(state, FileBlockKind::filling, 0, owner);
    // FILE-BLOCK acquire: the last owner has stored its last byte.
    if (set.state[way].compare_exchange_strong(state, filling, std::memory_order_acquire)) return {way, filling};
  }
  return {};
}

/// Whether the memory of a way that was just made `filling` was never filled before.
bool is_first_use(std::uint64_t filling) { return filling >> layout::kFileVersionShift == 1; }

}  // namespace

bool Cache::copy_block(std::uint64_t set_index, std::uint64_t name, std::uint64_t number, std::size_t within,
                       std::span<std::byte> to) const noexcept {
  layout::FileSet& set = segment_.set(set_index);
  for (std::size_t way = 0; way < kFileWays; ++way) {
    if (!is_tagged(set, way, name, number)) continue;
    // FILE-BLOCK acquire: the tag, and the bytes that were filled.
    const std::uint64_t state = set.state[way].load(std::memory_order_acquire);
    if (kind_of(state) != FileBlockKind::valid || within + to.size() > bytes_of(state)) continue;
    if (!is_tagged(set, way, name, number)) continue;
    copy_racing(to.data(), segment_.block(set_index, way) + within, to.size());
    std::atomic_thread_fence(std::memory_order_acquire);  // FILE-TAG acquire: if a byte is new, so is the state
    if (set.state[way].load(std::memory_order_relaxed) != state) continue;
    if (set.touched[way].load(std::memory_order_relaxed) == 0) set.touched[way].store(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

/// Whether it is worth while to begin: a read that ends in a miss has copied for nothing.
bool Cache::has(const File& file, std::uint64_t name, std::uint64_t first, std::uint64_t last) const noexcept {
  for (std::uint64_t number = first; number <= last; ++number) {
    const layout::FileSet& set = segment_.set(segment_.set_of(file.slot, number));
    bool there = false;
    for (std::size_t way = 0; way < kFileWays && !there; ++way) {
      there = is_tagged(set, way, name, number) &&
              kind_of(set.state[way].load(std::memory_order_relaxed)) == FileBlockKind::valid;
    }
    if (!there) return false;
  }
  return true;
}

bool Cache::read(const File& file, std::uint64_t offset, std::span<std::byte> to) noexcept {
  if (!attached()) return false;
  layout::FileCounts& counts = counts_here();
  // The name after the count (10).
  const std::uint64_t name = is_current(file) || make_current(file) ? name_of(file) : 0;
  const std::uint64_t first = offset / kFileBlock;
  bool hit = name != 0 && !to.empty() && first <= kLastBlock && to.size() <= segment_.bytes();
  const std::uint64_t last = hit ? (offset + to.size() - 1) / kFileBlock : 0;
  if (hit && last != first) hit = has(file, name, first, last);
  std::size_t done = 0;
  for (std::uint64_t number = first; hit && done < to.size(); ++number) {
    const std::size_t within = (offset + done) % kFileBlock;
    const std::size_t part = std::min(to.size() - done, kFileBlock - within);
    hit = copy_block(segment_.set_of(file.slot, number), name, number, within, to.subspan(done, part));
    done += part;
  }
  count(hit ? counts.hits : counts.misses);
  if (hit) count(counts.hit_bytes, to.size());
  return hit;
}

Fill Cache::fill(const File& file, std::uint64_t block, Admission when) noexcept {
  Fill fill;
  const std::uint64_t name = attached() && block <= kLastBlock ? name_of(file) : 0;
  if (name == 0) return fill;
  layout::FileSlot& slot = segment_.file(file.slot);
  if (slot.stamp.load(std::memory_order_acquire) == 0) return fill;  // FILE-STAMP
  const std::uint64_t set_index = segment_.set_of(file.slot, block);
  layout::FileSet& set = segment_.set(set_index);
  for (std::size_t way = 0; way < kFileWays; ++way) {
    const FileBlockKind kind = kind_of(set.state[way].load(std::memory_order_relaxed));
    const bool used = kind == FileBlockKind::filling || kind == FileBlockKind::valid;
    if (used && is_tagged(set, way, name, block)) return fill;
  }
  if (when == Admission::second_touch && !was_refused(set, name, block)) return fill;
  const std::uint64_t owner = registered();
  if (owner == 0) return fill;
  note_use(segment_.client(owner));
  const Key key(slot.device.load(std::memory_order_relaxed), slot.inode.load(std::memory_order_relaxed));
  const Taken taken = take_way(set, owner);
  if (taken.way == kFileWays) return fill;

  std::atomic_thread_fence(std::memory_order_release);  // FILE-TAG release: the state, before the tag and the bytes
  set.file[taken.way].store(name, std::memory_order_relaxed);
  set.number[taken.way].store(block, std::memory_order_relaxed);
  raise(slot.filled, name >> layout::kFileLifeEpochShift);
  fill.segment_ = segment_;
  fill.counts_ = &counts_here();
  fill.block_ = block;
  fill.set_ = set_index;
  fill.way_ = taken.way;
  fill.state_ = taken.state;
  fill.again_ = when != Admission::first_touch;
  // FILE-FILL: this fill is seen before what is noted is looked at (5).
  arch::publish_then_look();
  // Whose place it is was read before the way was taken: it may have become another's, and its key with it.
  const bool said = slot.filled.load(std::memory_order_relaxed) >= name >> layout::kFileLifeEpochShift;
  if (!said || name_of(file) != name || is_marked(key) ||
      is_changing(key, block * kFileBlock, (block + 1) * kFileBlock)) {
    fill.end();
  }
  if (is_first_use(taken.state)) count_first_use(set_index, taken.way);
  return fill;
}

bool Cache::was_passed(const File& file, std::uint64_t offset) noexcept {
  const std::uint64_t name = attached() ? name_of(file) : 0;
  if (name == 0) return false;
  constexpr std::uint64_t kNoBlock = std::uint64_t{1} << 63;
  const std::uint64_t span = offset / kSpan;
  layout::FileSet& set = segment_.set(segment_.set_of(file.slot, span * (kSpan / kFileBlock)));
  return was_refused(set, name, span | kNoBlock);
}

bool Cache::was_wanted(const File& file, std::uint64_t block) noexcept {
  const std::uint64_t name = attached() ? name_of(file) : 0;
  return name != 0 && was_refused(segment_.set(segment_.set_of(file.slot, block)), name, block);
}

/// From so many blocks on the card is to ask for a large page.
void Cache::count_first_use(std::uint64_t set, std::size_t way) const noexcept {
  const std::uint64_t before = segment_.run(set, way).fetch_add(1, std::memory_order_relaxed);
  if (before + 1 == layout::kFileRunWanted) tell_card();
}

Fill::Fill(Fill&& other) noexcept { *this = std::move(other); }

Fill& Fill::operator=(Fill&& other) noexcept {
  if (this == &other) return *this;
  end();
  segment_ = std::exchange(other.segment_, {});
  counts_ = other.counts_;
  block_ = other.block_;
  set_ = other.set_;
  way_ = other.way_;
  state_ = other.state_;
  again_ = other.again_;
  return *this;
}

Fill::~Fill() { end(); }

std::span<std::byte> Fill::memory() const {
  if (!*this) return {};
  return {segment_.block(set_, way_), kFileBlock};
}

std::uint64_t Fill::offset() const { return block_ * kFileBlock; }

bool Fill::publish(std::size_t bytes) noexcept {
  if (!*this) return false;
  if (bytes == 0 || bytes > kFileBlock) {
    end();
    return false;
  }
  assert(kind_of(state_) == FileBlockKind::filling);
  layout::FileSet& set = segment_.set(set_);
  std::uint64_t expected = state_;
  set.touched[way_].store(0, std::memory_order_relaxed);
  // FILE-BLOCK release: the tag, and the bytes.
  const bool published =
      set.state[way_].compare_exchange_strong(expected, next_state(state_, FileBlockKind::valid, bytes, 0),
                                              std::memory_order_release, std::memory_order_relaxed);
  count(published ? counts_->fills : counts_->lost_fills);
  if (published && again_) count(counts_->fills_again);
  if (published) segment_ = {};
  end();
  return published;
}

/// The way is absent again, unless the card took this process for dead.
void Fill::end() noexcept {
  if (!*this) return;
  layout::FileSet& set = segment_.set(set_);
  const std::uint64_t cancelled = next_state(state_, FileBlockKind::cancelled, 0, owner_of(state_));
  for (std::uint64_t state : {state_, cancelled}) {
    // FILE-BLOCK release: the last byte that this fill stored.
    if (set.state[way_].compare_exchange_strong(state, next_state(state, FileBlockKind::absent, 0, 0),
                                                std::memory_order_release, std::memory_order_relaxed)) {
      break;
    }
  }
  segment_ = {};
}

}  // namespace wherry::file
