// SPDX-License-Identifier: Apache-2.0
// Memory by which a program under `wherry run --files` gives writes of one open file to `wherry mount` without a system
// call, and the ioctls for it. Both ends run on one machine. Every field has a fixed size.
//
//   +-----------------+--------------------------------------------+
//   | WriteRingHeader | kWriteRingBytes: records, each before data |
//   +-----------------+--------------------------------------------+
//
// A position counts bytes from the first record on, and never decreases; the byte of a position lies at its remainder
// by kWriteRingBytes. A record begins at a multiple of its size, so it does not wrap around; its data may. The first
// record has no data.
//
// A file opened with O_APPEND has a ring of its own kind: the mount puts the data at the end of the file. Nobody else
// can change the file meanwhile, so each record's offset is the end of the file behind the record before it.
#pragma once

#include <sys/ioctl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kWriteRingVersion = 3;
inline constexpr std::uint32_t kWriteRingMagic = 0x474E5257;  ///< "WRNG" as bytes
inline constexpr std::uint64_t kWriteRingBytes = std::uint64_t{2} << 20;
/// In `last`: no record becomes valid any more.
inline constexpr std::uint64_t kWriteRingSealed = 1;

using RingWord64 = std::atomic<std::uint64_t>;
using RingWord32 = std::atomic<std::uint32_t>;
static_assert(RingWord64::is_always_lock_free && sizeof(RingWord64) == 8);
static_assert(RingWord32::is_always_lock_free && sizeof(RingWord32) == 4);

struct WriteRingHeader {
  std::uint32_t version;    // W: program, once: kWriteRingVersion
  std::uint32_t magic;      // W: program, once
  std::uint8_t random[16];  // W: program, once: the same as in the offer
  std::uint8_t reserved0[40];
  RingWord64 last;  // W: both: position of the last valid record; kWriteRingSealed
  std::uint8_t reserved1[56];
  RingWord64 taken;   // W: mount: position behind the last record that it has taken
  RingWord64 limit;   // W: mount: position that no record exceeds: the server's disk has space up to there
  RingWord32 sleeps;  // W: both: 1: the mount takes no records until the program asks it to
  std::uint8_t reserved2[4];
  RingWord64 end;  // W: mount, once, before it answers the offer: the end of the file
  std::uint8_t reserved3[32];
};
static_assert(sizeof(WriteRingHeader) == 192 && offsetof(WriteRingHeader, magic) == 4);
static_assert(offsetof(WriteRingHeader, random) == 8 && offsetof(WriteRingHeader, reserved0) == 24);
static_assert(offsetof(WriteRingHeader, last) == 64 && offsetof(WriteRingHeader, reserved1) == 72);
static_assert(offsetof(WriteRingHeader, taken) == 128 && offsetof(WriteRingHeader, limit) == 136);
static_assert(offsetof(WriteRingHeader, sleeps) == 144 && offsetof(WriteRingHeader, reserved2) == 148);
static_assert(offsetof(WriteRingHeader, end) == 152 && offsetof(WriteRingHeader, reserved3) == 160);

/// W: program, before it is valid.
struct WriteRingRecord {
  std::uint64_t offset;  // of the data in the file
  std::uint64_t next;    // the program's offset in the file behind this record
  std::uint32_t length;  // of the data
  std::uint8_t reserved[4];
  std::uint64_t end;  // of a file opened with O_APPEND behind this record; otherwise 0
};
static_assert(sizeof(WriteRingRecord) == 32 && std::is_trivially_copyable_v<WriteRingRecord>);
static_assert(offsetof(WriteRingRecord, offset) == 0 && offsetof(WriteRingRecord, next) == 8);
static_assert(offsetof(WriteRingRecord, length) == 16 && offsetof(WriteRingRecord, reserved) == 20);
static_assert(offsetof(WriteRingRecord, end) == 24);
static_assert(kWriteRingBytes % sizeof(WriteRingRecord) == 0);

/// Longer calls of write and pwrite are the kernel's.
inline constexpr std::size_t kMostWrittenByRing = std::size_t{128} << 10;
/// Data of one record of a file opened with O_APPEND.
inline constexpr std::uint32_t kMostAppendedByRing = std::uint32_t{32} << 10;

/// Bytes of a record and its data.
constexpr std::uint64_t write_ring_bytes(std::uint32_t length) {
  constexpr std::uint64_t kUnit = sizeof(WriteRingRecord);
  return kUnit + (length + kUnit - 1) / kUnit * kUnit;
}

/// Size of the memory.
inline constexpr std::size_t kWriteRingMemory = sizeof(WriteRingHeader) + kWriteRingBytes;

/// Names the memory to the mount.
struct WriteRingOffer {
  std::uint32_t version;    // W: program: kWriteRingVersion
  std::int32_t descriptor;  // W: program: of a memfd in this process that cannot shrink
  std::uint8_t random[16];  // W: program
  std::uint32_t appends;    // W: program: 1: the descriptor has O_APPEND
  std::uint32_t reserved;   // W: program: 0
};
static_assert(sizeof(WriteRingOffer) == 32 && offsetof(WriteRingOffer, descriptor) == 4);
static_assert(offsetof(WriteRingOffer, random) == 8 && offsetof(WriteRingOffer, appends) == 24);

/// Attaches a ring to an open file. EAGAIN: not now. Other errors: not this file.
inline constexpr unsigned long kWriteRingAttach = _IOW(0xE7, 3, WriteRingOffer);
/// Makes the mount take the records, so that there is room, and look at the ring from time to time.
inline constexpr unsigned long kWriteRingTake = _IO(0xE7, 4);

}  // namespace wherry::layout
