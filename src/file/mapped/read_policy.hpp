// SPDX-License-Identifier: Apache-2.0
//
// Which reads of a mapped file the path `auto` makes in place:
//
// - short reads in order, if three pages of the next kSpan bytes are in the page cache. The kernel's call reads ahead
//   better where they are not.
// - others of at most kLongestCopy where the part of the mapping in which they end was read before (touched_parts.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "file/mapped/mapped_file.hpp"
#include "file/mapped/touched_parts.hpp"

namespace wherry::file::mapped {

/// A reader in order decides once for the rest of so many bytes.
inline constexpr std::uint64_t kSpan = std::uint64_t{2} << 20;
/// From this length on a first read through a mapping saves nothing: its page faults cost as much.
inline constexpr std::uint64_t kLongRead = std::uint64_t{16} << 10;

/// The kernel's copy of a longer read is the faster one: neither the file nor the buffer stays in the caches.
inline constexpr std::uint64_t kLongestCopy = std::uint64_t{2} << 20;

/// The aligned stretch of the file within which a reader keeps its decision, in bytes. A power of two.
constexpr std::uint64_t stretch_of(std::uint64_t bytes) { return bytes >= kLongRead ? kPart : kSpan; }

/// What is known of one reader. A value: of threads that share it one may win.
struct ReadPolicy {
  enum class Way : std::uint8_t {
    look,      ///< decided by the next read in order
    kernels,   ///< up to the end of the span
    in_place,  ///< up to the end of the span
  };

  std::uint64_t end = 0;  ///< offset behind the last read
  Way way = Way::look;

  /// Whether to make this read in place; notes it. `bytes` is not 0, and the mapping has them.
  bool in_place(const MappedFile& file, std::uint64_t offset, std::uint64_t bytes) noexcept;
};

}  // namespace wherry::file::mapped
