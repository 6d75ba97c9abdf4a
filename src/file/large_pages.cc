// SPDX-License-Identifier: Apache-2.0
#include "file/large_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace wherry::file {
namespace {

using layout::kFileLargePage;

// Since Linux 5.14 and 6.1; the C library's headers may be older.
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;

/// From the first sight of new fills to the request. A store into a page waits while the kernel moves it, which takes
/// long where all CPUs are busy; by then most fills of one pass are done.
constexpr std::chrono::milliseconds kQuiet{50};

/// A last one that is shorter than a large page has none.
std::size_t whole_runs(const Segment& segment) { return segment.sets() * layout::kFileWays / layout::kFileRunBlocks; }

/// False: this kernel has no large pages to give. Whatever else goes wrong, the small ones stay.
bool gather(std::byte* begin, std::size_t bytes) noexcept {
  // The kernel makes none out of nothing. Populating stores nothing that others would see.
  for (std::size_t offset = 0; offset < bytes; offset += kFileLargePage) {
    if (::madvise(begin + offset, 4096, kPopulateWrite) != 0) return errno != EINVAL;
  }
  // One call for all of it: each waits until every CPU has done a piece of work for it.
  return ::madvise(begin, bytes, kCollapse) == 0 || errno != EINVAL;
}

bool is_wanted(std::uint64_t filled) {
  return (filled & layout::kFileRunDone) == 0 && filled >= layout::kFileRunWanted;
}

}  // namespace

void gather_tables(int file, std::size_t bytes) noexcept {
  const std::size_t whole = (bytes + kFileLargePage - 1) / kFileLargePage * kFileLargePage;
  void* const base = map_at_large_page(file, whole);
  if (base == nullptr) return;
  gather(static_cast<std::byte*>(base), whole);
  ::munmap(base, whole);
}

void LargePages::look(const Segment& segment, Clock::time_point now) noexcept {
  if (refused_ || since_) return;
  for (std::size_t i = 0; i < whole_runs(segment) && !since_; ++i) {
    if (is_wanted(segment.run(i).load(std::memory_order_relaxed))) since_ = now;
  }
}

void LargePages::gather(const Segment& segment, Clock::time_point now) noexcept {
  if (!since_ || now < *since_ + kQuiet) return;
  since_.reset();
  const std::size_t runs = whole_runs(segment);
  for (std::size_t i = 0; i < runs && !refused_; ++i) {
    std::size_t end = i;
    while (end < runs && is_wanted(segment.run(end).load(std::memory_order_relaxed))) {
      segment.run(end++).fetch_or(layout::kFileRunDone, std::memory_order_relaxed);
    }
    if (end == i) continue;
    refused_ = !file::gather(segment.block(0, 0) + i * kFileLargePage, (end - i) * kFileLargePage);
    i = end;
  }
}

std::optional<LargePages::Clock::time_point> LargePages::next() const {
  return since_ ? std::optional(*since_ + kQuiet) : std::nullopt;
}

}  // namespace wherry::file
