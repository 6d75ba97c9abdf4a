// SPDX-License-Identifier: Apache-2.0
// Writes that a mount holds back until they are sent to the server. They lie in a memfd, so that a program that is
// started after this one was killed finds everything that was acknowledged:
//
//   +-------------------+---------------+-----------------+--------------------+
//   | WriteBufferHeader | WriteFile x N | WriteRecord x M | M pieces of memory |
//   +-------------------+---------------+-----------------+--------------------+
//
// Record N has piece N. A record whose sequence is not 0 is committed: its data was acknowledged. The records of a file
// must be written in the order of their sequences.
//
// Each store is ordered after the stores before it. So a kill between any two of them leaves a file in one of these
// states:
//
//   used  sending  records   size and modified
//   0     any      any       are invalid. Records that name the file are invalid, too
//   1     0        any       match the server's file: no request is in progress
//   1     1        all       are from before the request, which was carried out, in part, or not. Or at least one
//                            of them is from after the request, which was carried out
//   1     1        the rest  are from after the request
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kWriteBufferVersion = 2;
inline constexpr std::uint32_t kWriteBufferMagic = 0x46554257;  ///< "WBUF" as bytes
inline constexpr std::uint32_t kWriteBufferPiece = 32768;       ///< maximum bytes of one record
inline constexpr std::uint32_t kWriteBufferFiles = 256;

using Word64 = std::atomic<std::uint64_t>;
using Word32 = std::atomic<std::uint32_t>;
static_assert(Word64::is_always_lock_free && sizeof(Word64) == 8 && Word32::is_always_lock_free && sizeof(Word32) == 4);

/// W: the mount, once, before everything else.
struct WriteBufferHeader {
  std::uint32_t version;  ///< kWriteBufferVersion
  std::uint32_t magic;
  std::uint32_t records;
  std::uint32_t reserved[13];
};
static_assert(sizeof(WriteBufferHeader) == 64 && std::is_trivially_copyable_v<WriteBufferHeader>);
static_assert(offsetof(WriteBufferHeader, version) == 0 && offsetof(WriteBufferHeader, magic) == 4);
static_assert(offsetof(WriteBufferHeader, records) == 8 && offsetof(WriteBufferHeader, reserved) == 12);

/// A file that may have records. W: the mount.
struct WriteFile {
  Word64 used;           ///< 1: the other fields are valid; 0: free
  Word64 sending;        ///< not 0: a request with its first records was sent. The server may have written them
  std::uint64_t device;  ///< with `inode` and `born`: identifies the file
  std::uint64_t inode;
  std::int64_t born_seconds;
  std::uint32_t born_nanoseconds;
  std::uint32_t appends;  ///< 1: its records are appends; 0: they are writes at offsets
  Word64 modified;        ///< modification time of the server's file, ns since 1970
  Word64 size;            ///< of the server's file
  Word64 name;            ///< index of the valid name
  Word64 drops;           ///< which set-user-ID and set-group-ID bits its records drop: kFileWriteBy...
  char names[2][4096];    ///< relative to the served directory, zero-terminated
};
static_assert(sizeof(WriteFile) == 80 + 8192);
static_assert(offsetof(WriteFile, used) == 0 && offsetof(WriteFile, sending) == 8);
static_assert(offsetof(WriteFile, device) == 16 && offsetof(WriteFile, inode) == 24 &&
              offsetof(WriteFile, born_seconds) == 32);
static_assert(offsetof(WriteFile, born_nanoseconds) == 40 && offsetof(WriteFile, appends) == 44);
static_assert(offsetof(WriteFile, modified) == 48 && offsetof(WriteFile, size) == 56);
static_assert(offsetof(WriteFile, name) == 64 && offsetof(WriteFile, drops) == 72);
static_assert(offsetof(WriteFile, names) == 80);

/// W: the mount.
struct WriteRecord {
  Word64 sequence;       ///< stored last; 0: free
  std::uint64_t offset;  ///< in the file
  std::uint32_t file;    ///< index of its WriteFile
  Word32 length;         ///< grows
  std::uint64_t reserved;
};
static_assert(sizeof(WriteRecord) == 32);
static_assert(offsetof(WriteRecord, sequence) == 0 && offsetof(WriteRecord, offset) == 8);
static_assert(offsetof(WriteRecord, file) == 16 && offsetof(WriteRecord, length) == 20);
static_assert(offsetof(WriteRecord, reserved) == 24);

}  // namespace wherry::layout
