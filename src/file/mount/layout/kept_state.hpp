// SPDX-License-Identifier: Apache-2.0
// What a mount's daemon leaves to the next one if it is killed: a log of records in a memfd that the supervisor keeps.
//
//   0            4096                 kKeptHalf                      2 * kKeptHalf
//   +-----------+---------------------+------------------------------+
//   | KeptStart | half 0: records     | half 1: records              |   sparse; one half is in use
//   +-----------+---------------------+------------------------------+
//
// A record is valid once `used` of its half covers it. A log that has grown is rewritten to the other half, which is
// valid once `half` names it. So a kill at any instruction leaves one complete log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wherry::layout {

inline constexpr std::uint32_t kKeptVersion = 2;
/// In place of the version: a half is full, and later records are not kept.
inline constexpr std::uint32_t kKeptFull = 0xFFFFFFFF;
inline constexpr std::uint64_t kKeptPage = 4096;
inline constexpr std::uint64_t kKeptHalf = std::uint64_t{1} << 32;

/// W: the daemon, every field.
struct KeptStart {
  std::uint32_t version;  ///< kKeptVersion, or kKeptFull
  std::uint32_t half;     ///< the half in use, 0 or 1
  std::uint64_t used[2];  ///< bytes of records in each half
};
static_assert(sizeof(KeptStart) == 24 && offsetof(KeptStart, half) == 4 && offsetof(KeptStart, used) == 8);

enum class KeptWord : std::uint32_t {
  node = 1,     ///< KeptNode: a file that the kernel is told of for the first time
  references,   ///< KeptNumber: the kernel's current number of references to a node
  forgotten,    ///< KeptNumber: a node is erased
  last_node,    ///< KeptNumber: the highest number of a node so far
  named,        ///< KeptName: a name of a node, now the newest
  unnamed,      ///< KeptName: a name is removed; node: 0
  opened,       ///< KeptOpen
  closed,       ///< KeptNumber: an open file or directory is closed
  failed,       ///< KeptNumber: an open file; value: KeptOpen::errors
  last_open,    ///< KeptNumber: the highest number of an open file so far
  begun,        ///< KeptNumber: a request that must not be carried out twice; value: identifies the first attempt
  renaming,     ///< KeptNumber: a rename has begun; value: its flags; text: the two paths with a zero between
  locker,       ///< KeptLocker: a lock owner with one open file; one record for each open file of it
  locked,       ///< KeptLock: a lock that was granted or given up
  unlocker,     ///< KeptNumber: a lock owner has ended
  ended,        ///< KeptNumber: the request of `begun` or `renaming` is answered
  device,       ///< KeptNumber: the mount's st_dev
  client,       ///< KeptNumber: identifies the mount to the server
  daemon,       ///< KeptNumber: how many daemons there have been
  passthrough,  ///< KeptNumber: 1 if passthrough is on; otherwise 0
  // KeptHead and a text. The last record of each word is valid.
  directory,      ///< the mount point
  first_request,  ///< the kernel's first request, by which both sides agreed on features
  server,         ///< the server's FileHello
  root,           ///< the FileStatus of its directory
  boot,           ///< KeptBoot; not a text
};

/// Begins each record. The next record begins at the next multiple of 8.
struct KeptHead {
  std::uint32_t word;   ///< KeptWord
  std::uint32_t bytes;  ///< of the record, including this header and the text
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
  std::uint64_t number;  ///< of a node, an open file, or a request of the kernel
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

/// In the lower half of KeptOpen::errors: a write or close has reported the error, which the kernel may have dropped.
inline constexpr std::uint32_t kKeptErrorReported = 1U << 15;

struct KeptOpen {
  KeptHead head;
  std::uint64_t number;
  std::uint64_t node;
  std::uint64_t request;     ///< the kernel's request that opened it
  std::uint64_t device;      ///< for a directory
  std::int64_t file_system;  ///< if the kernel moves the file's data: type of the server's file system
  std::uint32_t flags;       ///< kFileOpen...
  std::uint32_t mode;        ///< of the file
  std::int32_t backing;      ///< the kernel's number for passthrough; 0: none
  std::uint32_t errors;  ///< errors of acknowledged writes that no fsync has reported: its own in the lower half, with
                         ///< kKeptErrorReported; those of other open files in the upper half
};
static_assert(sizeof(KeptOpen) == 64 && offsetof(KeptOpen, file_system) == 40 && offsetof(KeptOpen, backing) == 56);

/// A boot of the host, for an open file. Only if it differs from the boot in `server`, or once did.
struct KeptBoot {
  KeptHead head;
  std::uint64_t number;   ///< of the open file
  std::uint8_t boot[16];  ///< FileHello::boot
  std::uint32_t lost;     ///< 1: data written before that boot is lost, and no call has reported it yet; otherwise 0
  std::uint32_t reserved;
};
static_assert(sizeof(KeptBoot) == 40 && offsetof(KeptBoot, boot) == 16 && offsetof(KeptBoot, lost) == 32);

struct KeptLocker {
  KeptHead head;
  std::uint64_t number;
  std::uint64_t node;
  std::uint64_t owner;  ///< the kernel's number
  std::uint64_t open;   ///< an open file with which it locks
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
