// SPDX-License-Identifier: Apache-2.0
// The protocol of `wherry ship` and `wherry collect` over one stream. Little-endian. No record is aligned in the
// stream, so both sides copy a record out before they read it.
//
//   shipper to collector                               collector to shipper
//   +-----------+-------+                              +------------+------+---------+
//   | ShipHello | label |  once                        | ShipResult | path | message |  any number, then one `summary`
//   +-----------+-------+                              +------------+------+---------+
//   +------------+------+--------+------+
//   | ShipRecord | path | target | data |  any number, the last one `goodbye`
//   +------------+------+--------+------+
//
// A file consists of `file`, then `data` records with rising offsets (a gap between them is a hole), then `file_end`
// with the hash of the content, or `abandon`. No other record may be inside a file. A directory comes before its
// content.
//
// `id` numbers the paths shipped (directory, symlink, file) from 1; all records of one file have the file's id. The
// collector answers `refused` at once for a path that it will not or could not store. From time to time it answers
// `stored` for all paths up to an id that were not refused, so that a success needs no answer of its own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; this machine needs byte swaps");

inline constexpr std::uint32_t kShipVersion = 1;
inline constexpr std::uint32_t kShipMagic = 0x50494853;  ///< "SHIP" as bytes

// Limits. A receiver ends the session of a peer that exceeds one.
inline constexpr std::uint32_t kShipMaxLabel = 255;
inline constexpr std::uint32_t kShipMaxPath = 4095;  ///< of a path, and of a symlink's target
inline constexpr std::uint32_t kShipMaxMessage = 1024;
inline constexpr std::uint64_t kShipMaxData = 1 << 20;  ///< of one `data` record, so that a refusal takes effect soon
inline constexpr std::uint64_t kShipMaxFile = INT64_MAX;
/// `length` of a `file` whose length is not known beforehand, such as those of /proc; its `file_end` has the length.
inline constexpr std::uint64_t kShipUnknownLength = UINT64_MAX;

struct ShipHello {
  std::uint32_t version;      // W: shipper; kShipVersion
  std::uint32_t magic;        // W: shipper; kShipMagic
  std::int64_t pid;           // W: shipper; informational, 0: unknown
  std::uint32_t node;         // W: shipper; informational
  std::uint32_t label_bytes;  // W: shipper; bytes of the label behind this
  std::uint64_t total_files;  // W: shipper; for progress only, 0 if unknown
  std::uint64_t total_bytes;  // W: shipper; for progress only, 0 if unknown
  std::uint8_t reserved[24];  // W: shipper; 0
};
static_assert(sizeof(ShipHello) == 64 && std::is_trivially_copyable_v<ShipHello>);
static_assert(offsetof(ShipHello, version) == 0);
static_assert(offsetof(ShipHello, magic) == 4);
static_assert(offsetof(ShipHello, pid) == 8);
static_assert(offsetof(ShipHello, node) == 16);
static_assert(offsetof(ShipHello, label_bytes) == 20);
static_assert(offsetof(ShipHello, total_files) == 24);
static_assert(offsetof(ShipHello, total_bytes) == 32);
static_assert(offsetof(ShipHello, reserved) == 40);

enum class ShipKind : std::uint32_t {
  directory = 1,  ///< path, mode, mtime
  symlink = 2,    ///< path, target, mtime
  file = 3,       ///< path, mode, mtime, length: the expected length, or kShipUnknownLength
  data = 4,       ///< offset, length: bytes of data behind this
  file_end = 5,   ///< length, hash
  abandon = 6,    ///< the file could not be read completely, or was refused: discard it
  goodbye = 7,    ///< id: of the last path shipped; length: the number of paths that the shipper could not read
};

/// One size for every kind; a field that the kind does not use is 0. W: shipper, every field.
struct ShipRecord {
  std::uint32_t kind;        ///< ShipKind
  std::uint32_t path_bytes;  ///< bytes of the path behind this
  std::uint64_t id;
  std::uint32_t mode;               ///< permission bits
  std::uint32_t mtime_nanoseconds;  ///< below 1e9
  std::int64_t mtime_seconds;
  std::uint64_t length;
  std::uint64_t offset;
  std::uint64_t hash;          ///< XXH3, 64 bits; a hole counts as its offset and length, 16 bytes
  std::uint32_t target_bytes;  ///< bytes of the symlink's target behind the path
  std::uint32_t reserved;
};
static_assert(sizeof(ShipRecord) == 64 && std::is_trivially_copyable_v<ShipRecord>);
static_assert(offsetof(ShipRecord, kind) == 0);
static_assert(offsetof(ShipRecord, path_bytes) == 4);
static_assert(offsetof(ShipRecord, id) == 8);
static_assert(offsetof(ShipRecord, mode) == 16);
static_assert(offsetof(ShipRecord, mtime_nanoseconds) == 20);
static_assert(offsetof(ShipRecord, mtime_seconds) == 24);
static_assert(offsetof(ShipRecord, length) == 32);
static_assert(offsetof(ShipRecord, offset) == 40);
static_assert(offsetof(ShipRecord, hash) == 48);
static_assert(offsetof(ShipRecord, target_bytes) == 56);
static_assert(offsetof(ShipRecord, reserved) == 60);

enum class ShipAnswer : std::uint32_t {
  stored = 1,   ///< id: all paths up to this one that were not refused have arrived, are verified and have their names
  refused = 2,  ///< id, error, path, message: this path was not stored; a former file of this name is unchanged
  summary = 3,  ///< after goodbye, the last answer: id as in `stored`; error, message: problems other than refusals
};

/// W: collector, every field.
struct ShipResult {
  std::uint32_t version;  ///< kShipVersion
  std::uint32_t answer;   ///< ShipAnswer
  std::uint64_t id;
  std::uint32_t error;          ///< an errno value with Linux's number; 0: none
  std::uint32_t path_bytes;     ///< bytes of the refused path behind this
  std::uint32_t message_bytes;  ///< bytes of the message behind the path
  std::uint32_t reserved;
};
static_assert(sizeof(ShipResult) == 32 && std::is_trivially_copyable_v<ShipResult>);
static_assert(offsetof(ShipResult, version) == 0);
static_assert(offsetof(ShipResult, answer) == 4);
static_assert(offsetof(ShipResult, id) == 8);
static_assert(offsetof(ShipResult, error) == 16);
static_assert(offsetof(ShipResult, path_bytes) == 20);
static_assert(offsetof(ShipResult, message_bytes) == 24);
static_assert(offsetof(ShipResult, reserved) == 28);

/// The bytes that a hole adds to the hash of a file.
struct ShipHole {
  std::uint64_t offset;
  std::uint64_t length;
};
static_assert(sizeof(ShipHole) == 16 && offsetof(ShipHole, length) == 8);

}  // namespace wherry::layout
