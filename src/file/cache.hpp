// SPDX-License-Identifier: Apache-2.0
// The cache of file blocks that all processes of a card share: clean copies of what the kernel has, served without a
// system call. The sources src/file/cache*.cc include headers only of src/arch and src/file/layout, use neither
// exceptions nor the heap nor thread-local variables, and can be compiled into a library that has nothing else of
// Wherry.
//
// Unless a call says otherwise, it is noexcept, may be made from any thread and from a signal handler, never blocks,
// never waits for another process, allocates nothing and makes no system call (a fill tells the card, by two of them,
// when it is the 16th of 128 blocks of new memory). With a cache that is not attached every
// call does nothing: reads miss, fills are refused, changes and marks cost nothing.
//
// How a read is served, of a regular file (a descriptor `fd` for which pread is allowed):
//   1. Once, and again whenever 100 ms have passed since, or `validate` said `gone`:
//          const std::uint64_t now = Stamp::now();  ::fstat(fd, &status);
//          if (file is not of this cache, or says gone) file = cache.open(Key(status));
//          state = validate(cache, file, fd, status, now);
//      Only with `usable` the cache may be asked until the next time.
//   2. cache.read(file, offset, buffer): true: done. A read that reaches the end of the file is never served.
//   3. A miss: for each block wanted `cache.fill(file, block, admission)`; with a Fill: pread(fd, fill.memory(),
//      fill.offset()), copy the wanted part out of fill.memory(), then fill.publish(bytes), whose answer matters to
//      later calls only. Without a Fill, and where pread gave less than what is wanted or failed (EFAULT: no room left
//      in /dev/shm), the kernel's own call.
// How a change is made (write, truncate, fallocate, the target of copy_file_range ...):
//      Change change(cache, Key(status), offset, length);  // or without offset and length: any part of the file
//      the kernel's call;
// The change ends with the object; what it changed is not in the cache then, and no fill puts older bytes there.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "file/cache_segment.hpp"
#include "file/layout/cache.hpp"
#include "file/layout/revocations.hpp"

namespace wherry::file {

/// What tells files apart. From fstat.
struct Key {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  Key() = default;
  Key(std::uint64_t device_number, std::uint64_t inode_number) : device(device_number), inode(inode_number) {}
  explicit Key(const struct ::stat& status) : device(status.st_dev), inode(status.st_ino) {}
  bool operator==(const Key&) const = default;
};

/// Whether a program may have a file open to write, or mapped.
enum class Writers : std::uint8_t {
  none,     ///< none had it at a moment before the fstat: a call that writes after that stamps the file anew
  ours,     ///< the card's, it seems: it has changed the file since the last stamp. Its changes are noted
  perhaps,  ///< one may be inside a call that stamped the file when it began, and stores its bytes later
};

/// What changes whenever a program that the cache does not see changes the file. A stamp that is too young, measured by
/// the file system's clock, proves nothing: a second change may leave the same one. Stamps with and without writers
/// differ: what was cached while there were some is dropped once there are none.
class Stamp {
 public:
  /// Nanoseconds of the clock that stamps files, coarse. To be read *before* fstat. No system call (vDSO).
  static std::uint64_t now() noexcept;
  Stamp(const struct ::stat& status, std::uint64_t now_before, Writers writers = Writers::perhaps) noexcept;

  [[nodiscard]] bool settled() const { return settled_; }
  /// Of the file, its size, mtime and ctime; never 0.
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
  bool settled_;
};

/// A file's place in the table of files. Copied freely; a place that was given to another file meanwhile is noticed by
/// every call. Valid in the children of a fork.
struct File {
  std::uint32_t slot = UINT32_MAX;
  std::uint64_t born = 0;
  [[nodiscard]] bool none() const { return slot == UINT32_MAX; }
};

enum class Validity : std::uint8_t {
  usable,      ///< what the cache has is not older than the stamp
  unsettled,   ///< the file was changed a moment ago: the kernel serves it; ask again after kSettledAfter
  has_writer,  ///< one that cannot be seen: the kernel serves it
  gone,        ///< the File's place is another file's: open again
};

inline constexpr std::uint64_t kSettledAfter = 20'000'000;  // ns: twice the longest tick of kernels in use
/// With writers that may not be ours: longer than a call takes that writes to the page cache and is preempted in the
/// middle.
inline constexpr std::uint64_t kSettledWithWriters = 2'000'000'000;

/// When a block that is not in the cache may be put there.
enum class Admission : std::uint8_t {
  first_touch,   ///< at once: small reads in order, or all of them if the user wants it
  second_touch,  ///< if it was refused for this reason some time ago
  wanted_again,  ///< at once: `was_passed` said so
};
/// For a read of `length` bytes that missed; `in_order`: it begins where the descriptor's last one ended. Reads of
/// kLargeRead and more pass at second touch only.
Admission admission(std::size_t length, bool in_order) noexcept;
inline constexpr std::size_t kLargeRead = std::size_t{64} << 10;

/// Readers in order are remembered by so many bytes, not by blocks: what a first pass costs has to be next to nothing.
inline constexpr std::size_t kSpan = 16 * layout::kFileBlock;

/// Why a read was the kernel's call.
enum class KernelReason : std::uint8_t { first_touch, changed, writer, end, other };

struct Counts {
  std::uint64_t hits = 0;        ///< reads served
  std::uint64_t hit_bytes = 0;   ///< bytes of them
  std::uint64_t misses = 0;      ///< reads not served
  std::uint64_t fills = 0;       ///< blocks published
  std::uint64_t lost_fills = 0;  ///< blocks not published, because of a change meanwhile
  std::uint64_t changes = 0;     ///< changes begun
  std::uint64_t drops = 0;       ///< blocks dropped one by one
  std::uint64_t drop_alls = 0;   ///< files of which everything was dropped
  // Of the reads that were not served, where the caller says it: those of which something was filled, and the kernel's.
  std::uint64_t fills_served = 0;
  std::uint64_t kernels_first_touch = 0;  ///< nothing of it was wanted before
  std::uint64_t kernels_changed = 0;      ///< the file was changed a moment ago
  std::uint64_t kernels_writer = 0;       ///< the file has a writer that cannot be seen
  std::uint64_t kernels_end = 0;          ///< the end of the file was reached
  std::uint64_t kernels_other = 0;
  std::uint64_t fills_again = 0;  ///< of the fills, blocks that were wanted before
};

/// Why a cache could not be attached.
struct Refusal {
  int error = 0;            ///< an errno value; 0: it was attached
  const char* reason = "";  ///< what is wrong, static text
  const char* advice = "";  ///< what to do about it, static text
  explicit operator bool() const { return error != 0; }
};

class Cache;

/// A block being filled by this process; no other reads or writes its memory until it ends. Ends with the object, in
/// the process and by any thread of it, not in a forked child: there `forget`.
class Fill {
 public:
  Fill() = default;
  Fill(Fill&& other) noexcept;
  Fill& operator=(Fill&& other) noexcept;
  ~Fill();

  explicit operator bool() const { return static_cast<bool>(segment_); }
  /// A whole block, layout::kFileBlock bytes.
  [[nodiscard]] std::span<std::byte> memory() const;
  /// Where in the file the block begins.
  [[nodiscard]] std::uint64_t offset() const;
  /// The first `bytes` of the block are what pread of this file returned after the Fill was made. False: the file was
  /// changed meanwhile; what pread gave is right for the call that wanted it, and for no later one. 0: as if abandoned.
  /// Ends the Fill: its memory may be another's block from then on.
  bool publish(std::size_t bytes) noexcept;
  /// Lets go of the object without ending the fill: for a forked child, whose parent holds the block.
  void forget() { segment_ = {}; }

 private:
  friend class Cache;
  void end() noexcept;

  Segment segment_;
  layout::FileCounts* counts_ = nullptr;
  std::uint64_t block_ = 0;
  std::uint64_t set_ = 0;
  std::size_t way_ = 0;
  std::uint64_t state_ = 0;  // as it was when this process made it `filling`
  bool again_ = false;       // it was wanted before
};

/// A change of a file under way: from the construction on the range is not in the cache, and nothing of it gets there.
/// If the process dies before it ends, the card ends it; until then the range stays out of the cache.
class Change {
 public:
  Change(Cache& cache, const Key& key, std::uint64_t offset, std::uint64_t length) noexcept;
  /// Any part of the file: appends, truncations, offsets that are not known.
  Change(Cache& cache, const Key& key) noexcept;
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change();

 private:
  Cache& cache_;
  Key key_;
  std::uint32_t record_;
};

/// A writer that the cache cannot see (a shared writable mapping, stdio, io_uring, a program without the preload):
/// while a file is marked nothing of it is in the cache. A plain value; `Cache::unmark` ends it, or the process's
/// death.
struct Mark {
  std::uint32_t entry = UINT32_MAX;  ///< UINT32_MAX: the cache is not attached
};

inline constexpr std::size_t kPathBytes = 256;
/// The path of the segment of this card: of the effective user, WHERRY_JOB and WHERRY_NODE. False: the job's name or
/// the node is not valid.
bool segment_path(std::span<char, kPathBytes> path) noexcept;
/// What all threads of a client have counted; of no client, nothing.
Counts counts_of(const Segment& segment, std::uint64_t client) noexcept;
/// What names of these files begin with; the user follows.
inline constexpr std::string_view kSegmentPrefix = "wherry-files-";
inline constexpr std::string_view kRevocationsPrefix = "wherry-changes-";
/// The path of what the cards beside a segment tell each other (layout::FileRevocations). False: the segment is not
/// named like one.
bool revocations_path(std::string_view segment, std::span<char, kPathBytes> path) noexcept;
/// Maps it. Null: it is not this user's, or damaged.
layout::FileRevocations* map_revocations(int fd) noexcept;
/// Maps a segment, if it is this user's and whole. Maps nothing if it is refused.
Refusal map_segment(int fd, Segment& segment) noexcept;

/// Bytes of a block where they lie. What was read there was the file's when the glimpse was made if afterwards, behind
/// an acquire fence, both words are what they were.
struct Glimpse {
  std::span<const std::byte> bytes;  ///< empty: not in the cache
  const Word* block = nullptr;
  const Word* file = nullptr;
  std::uint64_t block_state = 0;
  std::uint64_t file_state = 0;
};

class Cache {
 public:
  constexpr Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() = default;  // what is mapped stays: other threads may be reading

  /// Maps the segment of this card (user, WHERRY_JOB, WHERRY_NODE) and registers the process. Makes a few system calls
  /// (about a dozen), keeps no descriptor. Refused if there is no segment (ENOENT: no card was started), if it is
  /// another user's, of another version or damaged. Refused with EUSERS if its table of processes is full: then it is
  /// attached all the same, and changes are noted, but nothing is filled. May be repeated after any other refusal. Not
  /// from a signal handler; by one thread at a time.
  Refusal attach() noexcept;
  /// The same with a segment by its path. For tests.
  Refusal attach(const char* path) noexcept;
  [[nodiscard]] bool attached() const { return attached_.load(std::memory_order_acquire); }  // FILE-ATTACHED

  /// Says that this process is a client no more: its records and marks end. By one thread, while no other uses the
  /// cache. What it mapped stays mapped. A process that just ends need not call it. After exec the new program attaches
  /// again and takes over its own registration.
  void detach() noexcept;

  /// In the child of a fork, before any other call: the child becomes a client of its own. Files stay valid. Fills,
  /// changes and marks are the parent's: Fills are to be forgotten, Changes must not end in the child (exec, _exit, or
  /// never), what is still marked (mappings are inherited) has to be marked again. A few system calls. Refused with
  /// EUSERS as attach. A child that does not call it is noticed at its first fill or change.
  Refusal after_fork() noexcept;

  /// The file's place, made if there is none. None if no place can be had, or the file is marked: the kernel serves it.
  [[nodiscard]] File open(const Key& key) noexcept;
  /// Whether it has one.
  [[nodiscard]] bool knows(const Key& key) const noexcept;
  /// Compares, and drops the whole file if the stamp is another one. See at the head of this file.
  Validity validate(const File& file, const Stamp& stamp) noexcept;
  /// Whether this is the stamp that was stored by the last `validate` of any process.
  [[nodiscard]] bool has_stamp(const File& file, const Stamp& stamp) const noexcept;
  /// Whether a Change of this file was begun since then.
  [[nodiscard]] bool was_changed_here(const File& file) const noexcept;

  /// Copies all of `to` from the cache, or says false: then `to` may be overwritten in part.
  bool read(const File& file, std::uint64_t offset, std::span<std::byte> to) noexcept;

  /// Whether that block is there, or was a moment ago.
  [[nodiscard]] bool contains(const File& file, std::uint64_t block) const noexcept;
  /// At most `length` bytes, to the end of the block at most.
  [[nodiscard]] Glimpse glimpse(const File& file, std::uint64_t offset, std::size_t length) noexcept;

  /// Reserves block number `block` (offset / layout::kFileBlock). Empty: it is there already, or is being filled, or is
  /// not admitted, or the file is being changed or is marked, or not validated, or everything in its place is in use.
  [[nodiscard]] Fill fill(const File& file, std::uint64_t block, Admission when) noexcept;

  /// Whether a reader in order passed here before, within the kSpan bytes around `offset`. If not, it is noted
  /// for the next one; if so, the note is taken away.
  [[nodiscard]] bool was_passed(const File& file, std::uint64_t offset) noexcept;
  /// The same of one block, as `fill` does at second touch.
  [[nodiscard]] bool was_wanted(const File& file, std::uint64_t block) noexcept;

  /// Counts a read that was the kernel's, or was served by filling.
  void count_kernels(KernelReason reason) noexcept;
  void count_filled() noexcept;

  /// Drops what is there now. A change needs Change instead: this alone does not keep older bytes from coming back.
  void drop(const Key& key, std::uint64_t offset, std::uint64_t length) noexcept;
  void drop_all(const Key& key) noexcept;

  /// From here on until unmark nothing of the file is in the cache. Marks count: two need two unmarks.
  [[nodiscard]] Mark mark(const Key& key) noexcept;
  /// Nothing of any file is in the cache: a program that cannot be seen at all runs. As long as this process lives,
  /// through exec too, unless unmarked.
  [[nodiscard]] Mark mark_all() noexcept;
  void unmark(Mark mark) noexcept;

  /// Where the card's process serves files (os_client.hpp); `port` 0: nowhere. Both secrets
  /// can be read in the segment only: `token` is what a client says, `proof` what the server answers.
  struct CardServer {
    std::uint64_t port = 0;
    std::int64_t process = 0;
    std::uint64_t token = 0;
    std::uint64_t proof = 0;
  };
  [[nodiscard]] CardServer card_server() const noexcept;
  /// By the card's process alone.
  void announce(CardServer server) noexcept;
  /// Whether this process is in the table of clients. A forked child that is not yet is entered now.
  [[nodiscard]] bool is_client() noexcept { return attached() && registered() != 0; }
  /// Whether that process is.
  [[nodiscard]] bool has_client(std::int64_t process) const noexcept;

  /// Of this process since it attached. Approximate when threads count at the same moment.
  [[nodiscard]] Counts counts() const noexcept;

 private:
  friend class Change;

  /// This process's number; 0: not registered.
  [[nodiscard]] std::uint64_t client() const { return self_->load(std::memory_order_relaxed); }
  /// The same, but a forked child that does not know of its fork yet registers first. 0: it could not.
  [[nodiscard]] std::uint64_t registered() noexcept;
  Refusal register_client() noexcept;
  Refusal attach_to(int fd, const char* path) noexcept;
  void attach_revocations(const char* segment) noexcept;
  void tell_card() const noexcept;
  void count_first_use(std::uint64_t set, std::size_t way) const noexcept;
  [[nodiscard]] layout::FileCounts& counts_here() const noexcept;

  [[nodiscard]] std::uint64_t name_of(const File& file) const noexcept;
  [[nodiscard]] bool copy_block(std::uint64_t set, std::uint64_t name, std::uint64_t number, std::size_t within,
                                std::span<std::byte> to) const noexcept;
  [[nodiscard]] bool has(const File& file, std::uint64_t name, std::uint64_t first, std::uint64_t last) const noexcept;
  [[nodiscard]] bool is_marked(const Key& key) const noexcept;
  [[nodiscard]] bool is_changing(const Key& key, std::uint64_t begin, std::uint64_t end) const noexcept;
  [[nodiscard]] File claim(const Key& key, std::uint32_t group) noexcept;
  void drop_blocks(std::uint32_t slot, std::uint64_t life, std::uint64_t first, std::uint64_t last) noexcept;
  void drop_block(std::uint64_t set, std::uint64_t name, std::uint64_t number) noexcept;

  [[nodiscard]] static std::uint32_t group_of(const Key& key) noexcept;
  [[nodiscard]] std::uint64_t seen_now(const Key& key) const noexcept;
  [[nodiscard]] bool is_current(const File& file) const noexcept;
  bool make_current(const File& file) noexcept;
  void revoke_elsewhere(const Key& key) noexcept;
  bool drop_epoch(const File& file, const Key& key) noexcept;

  std::uint32_t begin_change(const Key& key, std::uint64_t begin, std::uint64_t end) noexcept;
  void end_change(std::uint32_t record, const Key& key) noexcept;

  std::atomic<bool> attached_{false};
  Segment segment_;
  layout::FileRevocations* revocations_ = nullptr;  // null: other cards' changes show in stamps only
  Word* self_ = nullptr;                            // this process's number, where a fork wipes it
  Word own_{0};                                     // there, if the kernel cannot wipe
  mutable layout::FileCounts uncounted_{};          // of calls without a number
  char path_[kPathBytes] = {};
};

/// Of a file open in this process. `perhaps` also where the kernel does not say (another user's file without CAP_LEASE,
/// no /proc, no descriptor left). Some system calls. Not from a signal handler.
[[nodiscard]] Writers writers_of(int fd) noexcept;

/// Cache::validate with what `fd` is like: `status` and `now`, which was read before it. Looks for writers if the cache
/// does not know the file as it is; some system calls then, otherwise none.
Validity validate(Cache& cache, const File& file, int fd, const struct ::stat& status, std::uint64_t now) noexcept;

}  // namespace wherry::file
