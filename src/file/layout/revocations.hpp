// SPDX-License-Identifier: Apache-2.0
// What the cards of one user and one kernel tell each other of changes: for each file a count, which it shares with
// others. It is counted up after the change and before the call returns; a card that has cached something of a
// file under an earlier count drops it. The file `wherry-changes-USER`, beside the segments of the cards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "file/layout/cache.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kFileRevocationsVersion = 1;
inline constexpr std::uint32_t kFileRevocationsMagic = 0x47484357;  // "WCHG" as bytes
inline constexpr std::size_t kFileRevocationCounts = 8192;

struct FileRevocations {
  std::uint32_t version;              // W: maker, once, under a lock on the file
  std::uint32_t magic;                // W: maker, once; kFileRevocationsMagic
  std::uint64_t reserved[7];          // 0
  Word count[kFileRevocationCounts];  // W: any client, atomic addition (FILE-REVOKE)
};
static_assert(std::is_standard_layout_v<FileRevocations>);
static_assert(sizeof(FileRevocations) == 64 + kFileRevocationCounts * sizeof(Word));
static_assert(offsetof(FileRevocations, version) == 0 && offsetof(FileRevocations, magic) == 4);
static_assert(offsetof(FileRevocations, count) == 64);

/// What a card notes beside a file: the count when the file was last found current, and which count is the file's.
inline constexpr unsigned kFileSeenShift = 16;
static_assert(kFileRevocationCounts <= std::size_t{1} << kFileSeenShift);

}  // namespace wherry::layout
