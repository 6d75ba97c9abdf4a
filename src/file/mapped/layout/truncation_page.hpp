// SPDX-License-Identifier: Apache-2.0
// The page of truncation counters, `wherry-truncations-USER` in /dev/shm, which all processes of one user map. A
// process that shortens a file increments the file's counter. A reader of a mapping of the file checks the counter with
// one load.
//
//   0                                        4096
//   +---------+---------+---- ... ----+---------+
//   | counter | counter |             | counter |    one for all files whose device and inode hash to it
//   +---------+---------+---- ... ----+---------+
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::size_t kTruncationCounters = 1024;

struct TruncationPage {
  std::array<std::atomic<std::uint32_t>, kTruncationCounters> counters;  // W: any process of the user, by adding
};

static_assert(sizeof(TruncationPage) == 4096);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::is_standard_layout_v<TruncationPage>);

}  // namespace wherry::layout
