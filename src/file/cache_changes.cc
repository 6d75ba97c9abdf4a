// SPDX-License-Identifier: Apache-2.0
//
// What is noted of changes (4, 5 of cache.cc's invariants), and what the dead leave behind (9).
#include <utility>

#include "arch/barrier.hpp"
#include "file/cache.hpp"

namespace wherry::file {
namespace {

using layout::kFileMarkBits;
using layout::kFileMarksPerBucket;
using layout::kFileMostChanges;
using layout::kFileMostUnseen;

// What a Change or a Mark is: an entry of one of three tables.
constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kMarkEntry = std::uint32_t{1} << 30;    // in the table of marks
constexpr std::uint32_t kUnseenEntry = std::uint32_t{1} << 29;  // in the table of what is unseen
constexpr std::uint32_t kEntryMask = kUnseenEntry - 1;

constexpr std::uint64_t kHashMask = (std::uint64_t{1} << kFileMarkBits) - 1;

std::uint64_t hash_of(const Key& key) { return mixed(key.inode, key.device) & kHashMask; }

Word& entry_of(const Segment& segment, std::uint32_t entry) {
  const std::uint32_t index = entry & kEntryMask;
  if ((entry & kUnseenEntry) != 0) return segment.unseen(index);
  return segment.marks(index / kFileMarksPerBucket).entry[index % kFileMarksPerBucket];
}

/// Where this thread of that client looks first among so many, so that few meet: the threads of forked processes lie at
/// the same addresses.
std::size_t place_of_thread(std::uint64_t owner, std::size_t places) {
  const auto thread = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) >> 6);
  const std::uint32_t spread = (thread + static_cast<std::uint32_t>(owner)) * 0x9e3779b1;
  return std::uint64_t{spread} * places >> 32;
}

bool claim(layout::FileChange& change, std::uint64_t owner) {
  std::uint64_t nobody = 0;
  return change.owner.load(std::memory_order_relaxed) == 0 &&
         // FILE-CHANGE acquire: the last owner's end
         change.owner.compare_exchange_strong(nobody, owner, std::memory_order_acquire, std::memory_order_relaxed);
}

/// A free record, among those in use already if there is one: the fewer, the less a filler has to look at.
std::uint32_t claim_change(const Segment& segment, std::uint64_t owner) {
  Word& used = segment.header().changes_used;
  const std::size_t in_use = Segment::used(used, kFileMostChanges);
  const std::size_t start = place_of_thread(owner, in_use);
  for (std::size_t i = 0; i < in_use; ++i) {
    const std::size_t at = start + i < in_use ? start + i : start + i - in_use;
    if (claim(segment.change(at), owner)) return static_cast<std::uint32_t>(at);
  }
  for (std::size_t at = in_use; at < kFileMostChanges; ++at) {
    if (!claim(segment.change(at), owner)) continue;
    raise(used, at + 1);
    return static_cast<std::uint32_t>(at);
  }
  return kNone;
}

/// Whether that record's change is under way and reaches into the range.
bool reaches(const layout::FileChange& change, const Key& key, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t turn = change.turn.load(std::memory_order_acquire);  // FILE-CHANGE: which file, which range
  if (turn % 2 == 0) return false;
  const Key changed(change.device.load(std::memory_order_relaxed), change.inode.load(std::memory_order_relaxed));
  const bool apart =
      change.end.load(std::memory_order_relaxed) <= begin || end <= change.begin.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);  // FILE-TURN acquire: if a word is new, so is the turn
  // Another change by now: it may be of any file.
  if (change.turn.load(std::memory_order_relaxed) != turn) return true;
  return changed == key && !apart;
}

void end_record(layout::FileChange& change) {
  const std::uint64_t turn = change.turn.load(std::memory_order_relaxed);
  change.turn.store(turn + turn % 2, std::memory_order_release);  // FILE-CHANGE: the kernel has made the change
  change.owner.store(0, std::memory_order_release);               // FILE-CHANGE: the turn
}

void release_entry(Word& entry, std::uint64_t value) {
  // FILE-MARK release: the last change by the writer that could not be seen
  entry.compare_exchange_strong(value, 0, std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace

bool Cache::is_marked(const Key& key) const noexcept {
  const layout::FileCacheHeader& header = segment_.header();
  if (header.off.load(std::memory_order_relaxed) != 0) return true;
  const std::size_t unseen = Segment::used(header.unseen_used, kFileMostUnseen);
  for (std::size_t i = 0; i < unseen; ++i) {
    if (segment_.unseen(i).load(std::memory_order_acquire) != 0) return true;  // FILE-MARK: what was changed
  }
  const std::uint64_t hash = hash_of(key);
  for (const Word& entry : segment_.marks(hash).entry) {
    const std::uint64_t value = entry.load(std::memory_order_acquire);  // FILE-MARK: what was changed
    if (value != 0 && (value & kHashMask) == hash) return true;
  }
  return false;
}

bool Cache::is_changing(const Key& key, std::uint64_t begin, std::uint64_t end) const noexcept {
  const std::size_t in_use = Segment::used(segment_.header().changes_used, kFileMostChanges);
  for (std::size_t i = 0; i < in_use; ++i) {
    if (reaches(segment_.change(i), key, begin, end)) return true;
  }
  return false;
}

std::uint32_t Cache::begin_change(const Key& key, std::uint64_t begin, std::uint64_t end) noexcept {
  if (!attached()) return kNone;
  const std::uint64_t number = registered();
  count(counts_here().changes);
  const std::uint32_t record = claim_change(segment_, number == 0 ? kNobody : number);
  if (record == kNone) return mark(key).entry;  // as many changes as fit are under way
  layout::FileChange& change = segment_.change(record);
  std::atomic_thread_fence(std::memory_order_release);  // FILE-TURN release: the last change's end, before the key
  change.device.store(key.device, std::memory_order_relaxed);
  change.inode.store(key.inode, std::memory_order_relaxed);
  change.begin.store(begin, std::memory_order_relaxed);
  change.end.store(end, std::memory_order_relaxed);
  const std::uint64_t turn = change.turn.load(std::memory_order_relaxed) | 1;
  change.turn.store(turn, std::memory_order_release);  // FILE-CHANGE: which file, which range
  arch::publish_then_look();                           // FILE-FILL: noted, before blocks and fills are looked for (5)
  drop(key, begin, end - begin);
  return record;
}

void Cache::end_change(std::uint32_t record, const Key& key) noexcept {
  if (record == kNone || !attached()) return;
  revoke_elsewhere(key);
  if (record < kFileMostChanges) return end_record(segment_.change(record));
  unmark({record});
}

Change::Change(Cache& cache, const Key& key, std::uint64_t offset, std::uint64_t length) noexcept
    : cache_(cache),
      key_(key),
      record_(length == 0
                  ? kNone
                  : cache.begin_change(key, offset, length > UINT64_MAX - offset ? UINT64_MAX : offset + length)) {}

Change::Change(Cache& cache, const Key& key) noexcept
    : cache_(cache), key_(key), record_(cache.begin_change(key, 0, UINT64_MAX)) {}

Change::~Change() { cache_.end_change(record_, key_); }

Mark Cache::mark(const Key& key) noexcept {
  if (!attached()) return {};
  const std::uint64_t number = registered();
  if (number != 0) note_use(segment_.client(number));
  const std::uint64_t hash = hash_of(key);
  const std::uint64_t value = (number == 0 ? kNobody : number) << kFileMarkBits | hash;
  layout::FileMarks& bucket = segment_.marks(hash);
  Mark mark;
  for (std::size_t i = 0; i < kFileMarksPerBucket && mark.entry == kNone; ++i) {
    std::uint64_t nobody = 0;
    if (!bucket.entry[i].compare_exchange_strong(nobody, value, std::memory_order_relaxed)) continue;
    const std::size_t index = hash % layout::kFileMarkBuckets * kFileMarksPerBucket + i;
    mark.entry = kMarkEntry | static_cast<std::uint32_t>(index);
  }
  // No place for another one with this hash: nothing at all is cached as long as this one writes.
  if (mark.entry == kNone) return mark_all();
  arch::publish_then_look();  // FILE-FILL
  drop_all(key);
  return mark;
}

Mark Cache::mark_all() noexcept {
  if (!attached()) return {};
  const std::uint64_t number = registered();
  if (number != 0) note_use(segment_.client(number));
  for (std::size_t i = 0; i < kFileMostUnseen; ++i) {
    std::uint64_t nobody = 0;
    if (!segment_.unseen(i).compare_exchange_strong(nobody, number == 0 ? kNobody : number,
                                                    std::memory_order_relaxed)) {
      continue;
    }
    raise(segment_.header().unseen_used, i + 1);
    arch::publish_then_look();  // FILE-FILL
    drop_files(segment_);
    return {kUnseenEntry | static_cast<std::uint32_t>(i)};
  }
  turn_off(segment_);
  return {};
}

void Cache::unmark(Mark mark) noexcept {
  if (!attached() || mark.entry == kNone) return;
  Word& entry = entry_of(segment_, mark.entry);
  release_entry(entry, entry.load(std::memory_order_relaxed));
}

namespace {

/// Of a dead process: its fills, and places that it was about to give to a file.
void repair_blocks(const Segment& segment, std::uint64_t client) noexcept {
  for (std::uint64_t set_index = 0; set_index < segment.sets(); ++set_index) {
    for (Word& word : segment.set(set_index).state) {
      std::uint64_t state = word.load(std::memory_order_relaxed);
      const FileBlockKind kind = kind_of(state);
      if ((kind != FileBlockKind::filling && kind != FileBlockKind::cancelled) || owner_of(state) != client) continue;
      // FILE-BLOCK release: what the dead stored, which the kernel ordered
      word.compare_exchange_strong(state, next_state(state, FileBlockKind::absent, 0, 0), std::memory_order_release,
                                   std::memory_order_relaxed);
    }
  }
  for (std::uint32_t i = 0; i < layout::kFileSlots; ++i) {
    Word& word = segment.file(i).life;
    std::uint64_t life = word.load(std::memory_order_relaxed);
    if (file_kind_of(life) != FileKind::busy || file_owner_of(life) != client) continue;
    // FILE-LIFE release: what the dead stored
    word.compare_exchange_strong(life, life_of(FileKind::empty, 0, epoch_of(life)), std::memory_order_release,
                                 std::memory_order_relaxed);
  }
}

void repair_marks(const Segment& segment, std::uint64_t client) noexcept {
  for (std::size_t i = 0; i < kFileMostUnseen; ++i) release_entry(segment.unseen(i), client);
  for (std::size_t bucket = 0; bucket < layout::kFileMarkBuckets; ++bucket) {
    for (Word& entry : segment.marks(bucket).entry) {
      const std::uint64_t value = entry.load(std::memory_order_relaxed);
      if (value >> kFileMarkBits == client) release_entry(entry, value);
    }
  }
}

}  // namespace

void repair(const Segment& segment, std::uint64_t client, bool leave_marks) noexcept {
  layout::FileClient& slot = segment.client(client);
  // Looking through all tables takes the card a fraction of a millisecond: most that die have only read and written.
  const bool used = slot.used.load(std::memory_order_relaxed) != 0;
  for (std::size_t i = 0; i < kFileMostChanges; ++i) {
    layout::FileChange& change = segment.change(i);
    if (change.owner.load(std::memory_order_relaxed) == client) end_record(change);
  }
  if (used) repair_blocks(segment, client);
  if (leave_marks) return;
  if (used) repair_marks(segment, client);
  slot.start.store(0, std::memory_order_relaxed);
  slot.used.store(0, std::memory_order_relaxed);
  for (layout::FileCounts& counts : slot.counts) {
    for (Word* word :
         {&counts.hits, &counts.hit_bytes, &counts.misses, &counts.fills, &counts.lost_fills, &counts.changes,
          &counts.drops, &counts.drop_alls, &counts.fills_served, &counts.fills_again, &counts.kernels_first_touch,
          &counts.kernels_changed, &counts.kernels_writer, &counts.kernels_end, &counts.kernels_other}) {
      word->store(0, std::memory_order_relaxed);
    }
  }
  slot.pid.store(0, std::memory_order_release);  // FILE-CLIENT: all tables
}

}  // namespace wherry::file
