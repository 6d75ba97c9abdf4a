// SPDX-License-Identifier: Apache-2.0
// How pages of an arena take the place of private ones, with their content. Other threads go on storing there, and
// nothing of that may be lost: a store between the copying of a page and its exchange would be. So stores wait
// meanwhile (store_guard.hpp), until the 2 MiB at most that are exchanged at once are (0.5 to 0.8 ms where no other
// program runs). Reading does not wait. Beside the copy itself that costs 27 us, and 0.1 us for each page.
//
// Where they cannot be made to wait, little is exchanged at a time, and looked at once more before it is: then what is
// stored in the last 10 us or so before the exchange is lost. So is what is stored while pages of a file are copied
// (initialised static data, private mappings of files), which cannot be protected at all.
//
// A thread that sleeps on a futex there goes on sleeping on the old page, unless the futex is private, as those of
// mutexes and condition variables are. pthread_join sleeps on another kind, in the pages that hold the thread's own
// data. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/arena_view.hpp"
#include "memory/memory_advice.hpp"

namespace wherry::memory {

struct PageExchange {
  const ArenaView& arena;
  std::span<std::byte> memory;  ///< private, writable whole pages of one mapping
  std::uint64_t place = 0;      ///< in the arena, where nothing is yet
  const std::byte* view;        ///< of that place; not needed if the memory has a file
  int protection = 0;
  bool is_plain = true;   ///< the memory has no file behind it
  bool has_huge = false;  ///< the place has huge pages in it: it has them whether the memory was touched or not
  MemoryAdvice advice{};
};

struct Exchanged {
  std::size_t bytes = 0;  ///< from the start of the memory; all of it, unless one of these says why not
  int guard_error = 0;    ///< EMFILE, ENFILE, ENOMEM: for want of that stores would not wait
  int copy_error = 0;     ///< EFAULT, ENOMEM: the memory cannot be read, there is no memory for its copy
  int map_error = 0;  ///< EINVAL: the kernel does not let it (hugetlbfs); ENOMEM, EAGAIN: too many mappings, or locked
};

/// `memory` may be anything: the stack of the caller's, its heap, what the library itself has there.
Exchanged exchange_pages(const PageExchange& exchange) noexcept;

}  // namespace wherry::memory
