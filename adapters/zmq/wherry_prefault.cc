// SPDX-License-Identifier: Apache-2.0
#include "wherry_prefault.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>

// Linux 5.14; the headers of older C libraries do not name them.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

namespace zmq {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kChunk = std::uintptr_t{1} << 20;

/// Least missing pages of a chunk for a call; with fewer, the faults are cheaper.
constexpr std::ptrdiff_t kWorthACall = 16;

/// Most buffers skipped between two looks. A look costs a twentieth of copying 64 KiB.
constexpr unsigned kLongestInterval = 15;

/// Pages are computed with as numbers: the first and the last page of a buffer belong to others, too.
void* pointer_to(std::uintptr_t page) {
  return reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr)
}

/// Returns how many of the chunk's pages are not mapped yet. The range is a chunk and a page at most.
std::ptrdiff_t count_missing(std::uintptr_t begin, std::uintptr_t end) {
  std::array<unsigned char, kChunk / kPage + 1> there{};
  const std::uintptr_t pages = (end - begin) / kPage;
  if (::mincore(pointer_to(begin), end - begin, there.data()) != 0) return 0;
  return std::count_if(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(pages),
                       [](unsigned char page) { return (page & 1) == 0; });
}

}  // namespace

void wherry_prefault_t::before(const void* place, std::size_t bytes, std::size_t rest) {
  const auto first = reinterpret_cast<std::uintptr_t>(place);
  if (first >= begin_ && first + std::min(bytes, rest) <= end_) return;
  begin_ = first & ~(kPage - 1);
  end_ = (first + std::min(rest, kChunk) + kPage - 1) & ~(kPage - 1);
  end_ = std::min(end_, begin_ + kChunk + kPage);
  if (count_missing(begin_, end_) < kWorthACall) return;
  // May fail, on an older kernel or for memory that cannot be populated: the copy then takes its page faults itself.
  (void)::madvise(pointer_to(begin_), end_ - begin_,
                  access_ == access_t::reads ? MADV_POPULATE_READ : MADV_POPULATE_WRITE);
}

void wherry_heap_prefault_t::before(const void* place, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(place);
  if (first >= begin_ && first + bytes <= end_) return;
  if (passes_ != 0) {
    --passes_;
    return;
  }
  const std::uintptr_t begin = first & ~(kPage - 1);
  const std::uintptr_t end = (first + bytes + kPage - 1) & ~(kPage - 1);
  // The first and the last page are often there: the C library keeps its notes in them.
  const auto pages = static_cast<std::ptrdiff_t>((end - begin) / kPage);
  if (2 * count_missing(begin, end) < pages) {
    passes_ = interval_ = std::min(2 * interval_ + 1, kLongestInterval);
    return;
  }
  interval_ = 0;
  begin_ = begin;
  end_ = begin + kChunk;
  // Pages that were never written take no memory. If the heap ends sooner, the call maps what there is, and fails.
  (void)::madvise(pointer_to(begin_), end_ - begin_, MADV_POPULATE_READ);
}

}  // namespace zmq
