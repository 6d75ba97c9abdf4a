// SPDX-License-Identifier: Apache-2.0
// What a mount's daemon leaves to the next one if it is killed: a log of records in a memfd that the supervisor keeps.
//
//   0            4096                 kKeptHalf                      2 * kKeptHalf
//   +-----------+---------------------+------------------------------+
//   | KeptStart | half 0: records     | half 1: records              |   sparse; one half is in use
//   +-----------+---------------------+------------------------------+
//
// A record counts once `used` of its half covers it. A log that has grown is written anew to the other half, and counts
// from when `half` names that one: a kill at any instruction leaves one whole log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::layout {

inline constexpr std::uint32_t kKeptVersion = 2;
/// In place of the version: a half is full, and what follows is not kept.
inline constexpr std::uint32_t kKeptFull = 0xFFFFFFFF;
inline constexpr std::uint64_t kKeptPage = 4096;
inline constexpr std::uint64_t kKeptHalf = std::uint64_t{1} << 32;

/// W: the daemon, every field.
struct KeptStart {
  std::uint32_t version;  ///< kKeptVersion, or kKeptFull
  std::uint32_t half;     ///< the one in use, 0 or 1
  std::uint64_t used[2];  ///< bytes of records in each half
};
static_assert(sizeof(KeptStart) == 24 && offsetof(KeptStart, half) == 4 && offsetof(KeptStart, used) == 8);

enum class KeptWord : std::uint32_t {
  node = 1,     ///< KeptNode: the kernel is told of a file for the first time
  references,   ///< KeptNumber: how often the kernel refers to a node by now
  forgotten,    ///< KeptNumber: a node is no more
  last_node,    ///< KeptNumber: the highest number of a node so far
  named,        ///< KeptName: a name of a node, the newest of all
  unnamed,      ///< KeptName: a name is gone; node: 0
  opened,       ///< KeptOpen
  closed,       ///< KeptNumber: an open file or directory
  failed,       ///< KeptNumber: of an open file; value: KeptOpen::errors
  last_open,    ///< KeptNumber: the highest number of an open file so far
  begun,        ///< KeptNumber: a request that must not be done twice; value: what tells whether it was done
  renaming,     ///< KeptNumber: a rename is begun; value: its flags; the two paths follow as text, a zero between them
  locker,       ///< KeptLocker: an owner of locks, by an open file; several if it uses several
  locked,       ///< KeptLock: what an owner was granted, or has given up
  unlocker,     ///< KeptNumber: an owner of locks is gone
  ended,        ///< KeptNumber: it is answered
  device,       ///< KeptNumber: the mount's st_dev
  client,       ///< KeptNumber: by which the server knows the mount
  daemon,       ///< KeptNumber: how many there have been
  passthrough,  ///< KeptNumber: 1 if the kernel has taken it up; 0 otherwise
  // KeptHead and a text, the last of its word counts.
  directory,      ///< that is mounted on
  first_request,  ///< of the kernel, by which both have agreed on what they do
  server,         ///< the server's FileHello
  root,           ///< the FileStatus of its directory
  run,            ///< KeptRun; not a text
};

/// In front of each record. The next one follows at the next multiple of 8.
struct KeptHead {
  std::uint32_t word;   ///< KeptWord
  std::uint32_t bytes;  ///< with this, and with the text
};
static_assert(sizeof(KeptHead) == 8 && offsetof(KeptHead, bytes) == 4);

struct KeptNode {
  KeptHead head;
  std::uint64_t node;
  std::uint64_t device;
  std::uint64_t inode;
  std::int64_t born_seconds;
  std::uint32_t born_nanoseconds;
  std::uint32_t type;
};
static_assert(sizeof(KeptNode) == 48 && offsetof(KeptNode, born_seconds) == 32 && offsetof(KeptNode, type) == 44);

struct KeptNumber {
  KeptHead head;
  std::uint64_t number;  ///< of a node, of an open file, or of a request of the kernel's
  std::uint64_t value;
};
static_assert(sizeof(KeptNumber) == 24 && offsetof(KeptNumber, value) == 16);

/// The name follows as text.
struct KeptName {
  KeptHead head;
  std::uint64_t parent;
  std::uint64_t node;
};
static_assert(sizeof(KeptName) == 24 && offsetof(KeptName, node) == 16);

/// Of KeptOpen::errors, in the lower half: a write or close has told of it, and the kernel may have dropped that.
inline constexpr std::uint32_t kKeptErrorTold = 1U << 15;

struct KeptOpen {
  KeptHead head;
  std::uint64_t number;
  std::uint64_t node;
  std::uint64_t request;     ///< of the kernel's, which it answers
  std::uint64_t device;      ///< of a directory
  std::int64_t file_system;  ///< of a file that the kernel moves the data of: its type
  std::uint32_t flags;       ///< kFileOpen...
  std::uint32_t mode;        ///< of the file
  std::int32_t backing;      ///< the kernel's number of what it moves the data by; 0: it does not
  std::uint32_t errors;  ///< of writes that were acknowledged before, and that no fsync has told of: of its own in the
                         ///< lower half, with kKeptErrorTold; of other open files in the upper one
};
static_assert(sizeof(KeptOpen) == 64 && offsetof(KeptOpen, file_system) == 40 && offsetof(KeptOpen, backing) == 56);

/// A run of the host's kernel, for an open file: only if that is not the one that `server` tells of, or was not.
struct KeptRun {
  KeptHead head;
  std::uint64_t number;   ///< of the open file
  std::uint8_t boot[16];  ///< FileHello::boot
  std::uint32_t lost;     ///< 1: what was written to the file before is, and no call has told of that yet; 0 otherwise
  std::uint32_t reserved;
};
static_assert(sizeof(KeptRun) == 40 && offsetof(KeptRun, boot) == 16 && offsetof(KeptRun, lost) == 32);

struct KeptLocker {
  KeptHead head;
  std::uint64_t number;
  std::uint64_t node;
  std::uint64_t owner;  ///< the kernel's number
  std::uint64_t open;   ///< an open file by which it locks
  std::uint32_t process;
  std::uint32_t whole;  ///< 1: by flock(2); 0: by ranges
};
static_assert(sizeof(KeptLocker) == 48 && offsetof(KeptLocker, open) == 32 && offsetof(KeptLocker, whole) == 44);

/// As FileLock.
struct KeptLock {
  KeptHead head;
  std::uint64_t number;  ///< the owner's
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t type;
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(KeptLock) == 40 && offsetof(KeptLock, length) == 24 && offsetof(KeptLock, type) == 32);

}  // namespace wherry::layout
