// SPDX-License-Identifier: Apache-2.0
// The segment that all processes of a card map: clean blocks of files, and which process is changing which file. A file
// in /dev/shm; what is in front of the data is allocated when it is made, the data when it is first filled.
//
//   0         4096       kFileClients..  kFileChanges..  kFileMarks..  kFileFiles..  kFileSets..      (large page)
//   +---------+----------+-----------+-----------+-----------+-----------+------- ... ----+---------+--- ... ---+
//   | header  | unseen   | clients   | changes   | marks     | files     | sets           | runs    | blocks    |
//   +---------+----------+-----------+-----------+-----------+-----------+------- ... ----+---------+--- ... ---+
//
// Tables and blocks begin where a large page does, in the file and in each mapping: the card asks the kernel for large
// pages, which every process maps by one entry instead of 512.
//
// Every process that maps it may write all of it (one user's processes): each value is copied once, and checked before
// it is used. A block lies in any of the ways of one set; way w of set s is block w * sets + s of the data, so that
// blocks in order lie in order, as far as they lie in the same way.
//
//   a set:   0                64                128               192       200       208
//            +----------------+-----------------+-----------------+---------+---------+-----------------+
//            | state of       | file of         | number of       | touched | hand    | ghosts          |
//            | ways 0 to 7    | ways 0 to 7     | ways 0 to 7     | (bytes) |         |                 |
//            +----------------+-----------------+-----------------+---------+---------+-----------------+
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kFileCacheVersion = 1;
inline constexpr std::uint32_t kFileCacheMagic = 0x4c494657;  // "WFIL" in memory, little-endian
inline constexpr std::size_t kFileBlock = std::size_t{16} << 10;
inline constexpr std::size_t kFileWays = 8;
inline constexpr std::size_t kFileSlots = 4096;        // files known at a time
inline constexpr std::size_t kFileNeighbours = 8;      // slots that a file may have: an aligned group of these
inline constexpr std::size_t kFileMostClients = 1024;  // processes
inline constexpr std::size_t kFileMostChanges = 1024;  // calls that change a file at the same moment
inline constexpr std::size_t kFileMarkBuckets = 1024;
inline constexpr std::size_t kFileMarksPerBucket = 8;
inline constexpr std::size_t kFileMostUnseen = 512;                 // programs that cannot be seen at all
inline constexpr std::size_t kFileMostSets = std::size_t{1} << 20;  // 128 GiB
inline constexpr std::size_t kFileCountShards = 4;
inline constexpr std::size_t kFileLargePage = std::size_t{2} << 20;
inline constexpr std::size_t kFileRunBlocks = kFileLargePage / kFileBlock;  // of one large page

struct FileCacheHeader {
  std::uint32_t version;        // W: maker, once, before the segment has a name
  std::uint32_t magic;          // W: maker, once; kFileCacheMagic
  std::uint64_t sets;           // W: maker, once; a power of two
  std::uint64_t pid_namespace;  // W: maker, once; the inode of its /proc/self/ns/pid: what pids below mean
  std::uint64_t reserved0[5];

  alignas(64) Word ended;  // W: card; not 0: no client may come any more, the segment is about to lose its name
  Word off;                // W: any client; not 0: a table was full when a change had to be noted: nothing is cached
  Word clients_used;       // W: any client; slots of the table that were ever in use: those above need no look
  Word changes_used;       // W: any client; likewise
  Word unseen_used;        // W: any client; likewise
  Word server;             // W: card; where it serves files: port | process << kFileServerShift; 0: nowhere
  Word server_token;       // W: card, before `server`; what its clients say in their FileHello
  Word server_proof;       // W: card, before `server`; what that server says in its own
};
static_assert(std::is_standard_layout_v<FileCacheHeader> && sizeof(FileCacheHeader) == 128);
static_assert(offsetof(FileCacheHeader, version) == 0 && offsetof(FileCacheHeader, magic) == 4);
static_assert(offsetof(FileCacheHeader, sets) == 8 && offsetof(FileCacheHeader, pid_namespace) == 16);
static_assert(offsetof(FileCacheHeader, ended) == 64 && offsetof(FileCacheHeader, off) == 72);
static_assert(offsetof(FileCacheHeader, clients_used) == 80 && offsetof(FileCacheHeader, changes_used) == 88);
static_assert(offsetof(FileCacheHeader, unseen_used) == 96 && offsetof(FileCacheHeader, server) == 104);
static_assert(offsetof(FileCacheHeader, server_token) == 112 && offsetof(FileCacheHeader, server_proof) == 120);
inline constexpr unsigned kFileServerShift = 16;

/// What a client counts; several of it, so that its threads seldom meet on one. Reads are hits, fills_served and
/// kernels_*.
struct FileCounts {
  alignas(64) Word hits;
  Word hit_bytes, misses, fills, lost_fills, changes, drops, drop_alls;
  Word fills_served;         // reads of which something was filled
  Word fills_again;          // of the fills: blocks that were wanted before
  Word kernels_first_touch;  // reads that were the kernel's: nothing of it was wanted before
  Word kernels_changed;      // the file was changed a moment ago
  Word kernels_writer;       // it has a writer that cannot be seen, or a program runs that cannot be seen
  Word kernels_end;          // they reached the end of the file
  Word kernels_other;        // no place was to be had, a change was under way, more than 64 MiB, a bad address
  std::uint64_t reserved[9];
};
static_assert(sizeof(FileCounts) == 192);

/// A process. Its number, counted from 1, is the owner in other tables; 0: no owner.
struct FileClient {
  Word pid;    // W: the client, compare-and-swap from 0 (FILE-CLIENT); W: card, 0 again, when it has repaired
  Word start;  // W: the client, before it makes changes; the start time in /proc/PID/stat; 0: not known
  Word used;   // W: the client; not 0: it may hold blocks, places of files, or marks
  std::uint64_t reserved[5];
  FileCounts counts[kFileCountShards];  // W: the client
  std::uint64_t reserved1[24];
};
static_assert(std::is_standard_layout_v<FileClient> && sizeof(FileClient) == 1024);
static_assert(offsetof(FileClient, pid) == 0 && offsetof(FileClient, start) == 8 && offsetof(FileClient, counts) == 64);

/// A call that is changing a file. W: the owner; W: card, once the owner is dead.
struct FileChange {
  alignas(64) Word owner;  // a client, or 0: free; compare-and-swap
  Word turn;               // odd while the change is under way (FILE-CHANGE)
  Word device;
  Word inode;
  Word begin;  // of the bytes that may change
  Word end;
  std::uint64_t reserved[2];
};
static_assert(std::is_standard_layout_v<FileChange> && sizeof(FileChange) == 64);
static_assert(offsetof(FileChange, owner) == 0 && offsetof(FileChange, turn) == 8);
static_assert(offsetof(FileChange, device) == 16 && offsetof(FileChange, inode) == 24);
static_assert(offsetof(FileChange, begin) == 32 && offsetof(FileChange, end) == 40);

/// Files with writers that cannot be seen. An entry is owner << kFileMarkBits | hash of the file, or 0: free. W: the
/// owner, compare-and-swap; W: card, once the owner is dead.
struct FileMarks {
  alignas(64) Word entry[kFileMarksPerBucket];
};
static_assert(sizeof(FileMarks) == 64);
inline constexpr unsigned kFileMarkBits = 50;

/// A file. `life` is kind | owner << 2 | epoch << 16; the owner is that of a place that is being given to a file. Each
/// change of `life` but the last of these makes the epoch one more: blocks of an earlier epoch belong to no file.
enum class FileKind : std::uint64_t { empty, busy, ready, retired };
using FileFlag = std::atomic<std::uint32_t>;
static_assert(FileFlag::is_always_lock_free && sizeof(FileFlag) == 4);
struct FileSlot {
  alignas(64) Word life;  // W: any client, compare-and-swap (FILE-LIFE)
  Word born;              // W: owner, while busy; the epoch in which the place was given to this file
  Word device;            // W: owner, while busy
  Word inode;             // W: owner, while busy
  Word stamp;             // W: any client; what the file's stamp was when it was last compared; 0: proves nothing
  FileFlag touched;       // W: any client; not 0: in use lately
  FileFlag changed;       // W: any client; not 0: a change was noted since the stamp was stored
  Word filled;            // W: any client, only ever more; the last epoch in which a block may have been filled
  Word seen;              // W: any client; the count of others' changes when they were last looked at, and which it is
};
static_assert(std::is_standard_layout_v<FileSlot> && sizeof(FileSlot) == 64);
static_assert(offsetof(FileSlot, life) == 0 && offsetof(FileSlot, born) == 8 && offsetof(FileSlot, device) == 16);
static_assert(offsetof(FileSlot, inode) == 24 && offsetof(FileSlot, stamp) == 32 && offsetof(FileSlot, touched) == 40);
static_assert(offsetof(FileSlot, changed) == 44 && offsetof(FileSlot, filled) == 48 && offsetof(FileSlot, seen) == 56);
inline constexpr unsigned kFileLifeOwnerShift = 2;
inline constexpr unsigned kFileLifeEpochShift = 16;
inline constexpr std::uint64_t kFileLastEpoch = (std::uint64_t{1} << 48) - 1;  // a place that reaches it is retired

/// A way. State: kind | valid bytes << 2 | owner << 17 | version << 31; the owner is that of a fill. Each change of the
/// state makes the version one more. A cancelled fill still stores into the block: only its owner ends it.
enum class FileBlockKind : std::uint64_t { absent, filling, cancelled, valid };
inline constexpr unsigned kFileBytesShift = 2;
inline constexpr unsigned kFileOwnerShift = 17;
inline constexpr unsigned kFileVersionShift = 31;
inline constexpr std::size_t kFileGhosts = 6;
using FileTouched = std::atomic<std::uint8_t>;

struct FileSet {
  alignas(64) Word state[kFileWays];  // W: any client, compare-and-swap (FILE-BLOCK)
  Word file[kFileWays];               // W: the filler; epoch << 16 | slot
  Word number[kFileWays];             // W: the filler; which block of the file
  FileTouched touched[kFileWays];     // W: any client; not 0: read since the hand passed
  Word hand;                          // W: any client; where the search for a victim goes on
  Word ghosts[kFileGhosts];           // W: any client; hashes of blocks that were refused at first touch
};
static_assert(std::is_standard_layout_v<FileSet> && sizeof(FileSet) == 256);
static_assert(offsetof(FileSet, state) == 0 && offsetof(FileSet, file) == 64 && offsetof(FileSet, number) == 128);
static_assert(offsetof(FileSet, touched) == 192 && offsetof(FileSet, hand) == 200 && offsetof(FileSet, ghosts) == 208);
static_assert(FileTouched::is_always_lock_free && sizeof(FileTouched) == 1);

inline constexpr std::size_t kFileUnseen = 4096;  // Words: owners of what runs unseen, or 0
inline constexpr std::size_t kFileClients = kFileUnseen + kFileMostUnseen * sizeof(Word);
inline constexpr std::size_t kFileChanges = kFileClients + kFileMostClients * sizeof(FileClient);
inline constexpr std::size_t kFileMarks = kFileChanges + kFileMostChanges * sizeof(FileChange);
inline constexpr std::size_t kFileFiles = kFileMarks + kFileMarkBuckets * sizeof(FileMarks);
inline constexpr std::size_t kFileSets = kFileFiles + kFileSlots * sizeof(FileSlot);
static_assert(sizeof(FileCacheHeader) <= kFileUnseen && kFileClients % 4096 == 0 && kFileSets % 4096 == 0);

/// How much of a large page's blocks was ever filled. W: any client, one more; W: card, the bit.
using FileRun = Word;
inline constexpr std::uint64_t kFileRunWanted = 16;  // blocks, 256 KiB: from then on a large page is worth its memory
inline constexpr std::uint64_t kFileRunDone = std::uint64_t{1} << 63;  // the kernel was asked for the large page

/// With that many sets: how many runs there are, where their table begins and ends, where the data begins, and where
/// the segment ends.
constexpr std::size_t file_runs(std::size_t sets) { return (sets * kFileWays + kFileRunBlocks - 1) / kFileRunBlocks; }
constexpr std::size_t file_runs_offset(std::size_t sets) { return kFileSets + sets * sizeof(FileSet); }
constexpr std::size_t file_tables_bytes(std::size_t sets) {
  return file_runs_offset(sets) + file_runs(sets) * sizeof(FileRun);
}
constexpr std::size_t file_data_offset(std::size_t sets) {
  return (file_tables_bytes(sets) + kFileLargePage - 1) & ~(kFileLargePage - 1);
}
constexpr std::size_t file_segment_bytes(std::size_t sets) {
  return file_data_offset(sets) + sets * kFileWays * kFileBlock;
}

static_assert(kFileBlock < (std::size_t{1} << (kFileOwnerShift - kFileBytesShift)), "valid bytes fit");
static_assert(kFileMostClients < (std::size_t{1} << (kFileVersionShift - kFileOwnerShift)), "owners fit");
static_assert(kFileMostClients < (std::size_t{1} << (kFileLifeEpochShift - kFileLifeOwnerShift)), "owners fit");
static_assert(kFileSlots <= (std::size_t{1} << kFileLifeEpochShift), "slots fit beside an epoch");

}  // namespace wherry::layout
