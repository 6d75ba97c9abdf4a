// SPDX-License-Identifier: Apache-2.0
//
// When an open file is mapped, and which of its reads are made in place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "file/mapped/mapped_file.hpp"
#include "file/mapped/progress.hpp"

namespace wherry::file::mapped {

/// The estimated time of a read in units of 256 ns: a system call, and a copy at 32 GB/s.
constexpr std::uint64_t cost_of_read(std::uint64_t bytes) { return 1 + std::min(bytes, std::uint64_t{1} << 24) / 8192; }

/// How long the kernel's reads of an open file must have taken before it is mapped, in units of cost_of_read.
struct SpentBefore {
  std::uint64_t later;  ///< mapping and unmapping take about 20 us
  std::uint64_t first;  ///< the first one in a process takes up to 100 us
};
// Sequential reads shorter than kLongRead gain from the mapping at once. Longer reads gain only if they read a part
// again; a file that is read once should not pay for a mapping. It is known to be read again once a read begins at its
// beginning.
inline constexpr SpentBefore kSpentBeforeShort{.later = 600, .first = 1000};
inline constexpr SpentBefore kSpentBeforeLong{.later = 2000, .first = 8000};
/// A few calls, if every read is to be made in place.
inline constexpr std::uint64_t kSpentBeforeEager = 8;
/// The largest value that matters.
inline constexpr std::uint64_t kMostSpent = kSpentBeforeLong.first;

/// Whether a read of `bytes` should map the file, after reads that cost `spent`. `eager`: every read is to be made in
/// place.
inline bool is_time_to_map(std::uint64_t spent, std::uint64_t offset, std::uint64_t bytes, const Progress& progress,
                           bool eager) noexcept {
  if (spent < kSpentBeforeEager) return false;
  if (eager && !progress.refused) return true;
  const SpentBefore& before = bytes < kLongRead || offset == 0 ? kSpentBeforeShort : kSpentBeforeLong;
  return spent >= (any_was_mapped() ? before.later : before.first);
}

/// Longer reads go to the kernel, which may shorten them.
inline constexpr std::uint64_t kLongestRead = std::uint64_t{1} << 30;

/// Whether this read should map the file again, after its mapping was evicted or was too short. True for one of every
/// Progress::kMostSkipped reads.
inline bool is_time_to_map_again(std::atomic<std::uint64_t>& word) noexcept {
  Progress progress = Progress::of(word.load(std::memory_order_relaxed));
  const bool skip = ++progress.skipped < Progress::kMostSkipped;
  if (!skip) progress.skipped = 0;
  word.store(progress.word(), std::memory_order_relaxed);
  return !skip;
}

/// Whether to make a read in place that does not continue where the last one ended. Not inlined: it is rare, and would
/// account for most of the stack frame that every read sets up.
[[gnu::noinline]] inline bool is_worth_it(std::atomic<std::uint64_t>& word, const MappedFile& file,
                                          std::uint64_t offset, std::uint64_t bytes) noexcept {
  Progress progress = Progress::of(word.load(std::memory_order_relaxed));
  const bool worth = progress.policy.in_place(file, offset, bytes);
  word.store(progress.word(), std::memory_order_relaxed);
  return worth;
}

/// Whether to copy all of these bytes from the mapping now. `open` is the owner's view of the file:
///   file()       the MappedFile
///   progress()   its Progress, as an atomic word
///   is_eager()   whether every read is to be made in place
///   map_again()  called if nothing is mapped
///   refresh()    asks for the size, under the owner's lock; false: the kernel must read
template <class Open>
bool is_in_place(Open& open, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0 || bytes > kLongestRead) return false;
  const bool eager = open.is_eager();
  if (!eager && Progress::try_continue(open.progress(), Progress::Way::kernels, offset, bytes)) return false;
  MappedFile& file = open.file();
  if (!file.is_mapped()) [[unlikely]] {
    open.map_again();
    return false;
  }
  // The file may have grown beyond the known end.
  if (!file.has(offset, bytes) && (file.is_fresh() || !open.refresh() || !file.has(offset, bytes))) return false;
  const bool worth = eager || Progress::try_continue(open.progress(), Progress::Way::in_place, offset, bytes) ||
                     is_worth_it(open.progress(), file, offset, bytes);
  // MappedFile::copy checks the range again, with the size known then.
  return worth && (file.is_fresh() || open.refresh());
}

}  // namespace wherry::file::mapped
