// SPDX-License-Identifier: Apache-2.0
//
// Which reads of a mapped file the path `auto` makes in place:
//
// - short sequential reads, if three pages of the next kSpan bytes are in the page cache. Otherwise the kernel's call
//   is better, since it reads ahead.
// - other reads of at most kLongestCopy, if the part of the mapping in which they end was read before
//   (touched_parts.hpp). On a delegating mount they may be longer, but some of their pages must be in the page cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "file/mapped/mapped_file.hpp"
#include "file/mapped/touched_parts.hpp"

namespace wherry::file::mapped {

/// A sequential reader decides once for the rest of this many bytes.
inline constexpr std::uint64_t kSpan = std::uint64_t{2} << 20;
/// A first read of at least this length gains nothing from a mapping: its page faults cost as much as it saves.
inline constexpr std::uint64_t kLongRead = std::uint64_t{16} << 10;

/// Longer reads are faster by the kernel's copy: neither the file nor the buffer stays in the CPU caches.
inline constexpr std::uint64_t kLongestCopy = std::uint64_t{2} << 20;

/// The aligned stretch of the file within which a reader keeps its decision, in bytes. A power of two.
constexpr std::uint64_t stretch_of(std::uint64_t bytes) { return bytes >= kLongRead ? kPart : kSpan; }

/// The state of one reader. A plain value: if threads share it, one of their updates may be lost.
struct ReadPolicy {
  enum class Way : std::uint8_t {
    look,      ///< the next sequential read decides
    kernels,   ///< by the kernel, up to the end of the stretch
    in_place,  ///< in place, up to the end of the stretch
  };

  std::uint64_t end = 0;  ///< end offset of the last read
  Way way = Way::look;

  /// Whether to make this read in place; records it. `bytes` must not be 0, and must lie within the mapping.
  bool in_place(const MappedFile& file, std::uint64_t offset, std::uint64_t bytes) noexcept;
};

}  // namespace wherry::file::mapped
