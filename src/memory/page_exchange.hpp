// SPDX-License-Identifier: Apache-2.0
// Replaces private pages by pages of an arena, with their content, while other threads use them.
//
// A store of another thread between the copy of a page and its exchange would be lost. So a guard makes stores wait
// (store_guard.hpp). At most 2 MiB are exchanged at once, during which stores wait for 0.5 to 0.8 ms on an idle
// machine. Loads do not wait. Besides the copy itself this costs 27 us, and 0.1 us per page.
//
// Stores can be lost in two cases:
//  - The kernel cannot make stores wait. Then 64 KiB (16 pages) are exchanged at a time, and stores since the copy are
//    copied again before the exchange. Stores of about the last 10 us before it are lost.
//  - The pages belong to a file (initialised static data, private mappings of files). They cannot be protected, so
//    stores during the copy are lost.
//
// A thread that sleeps on a futex in the memory without FUTEX_PRIVATE_FLAG keeps sleeping on the old page. Mutexes and
// condition variables use the flag. pthread_join does not; its futex is in the pages with the thread's own data.
// May include: base.
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
  std::uint64_t place = 0;      ///< an unused place in the arena
  const std::byte* view;        ///< a mapping of that place; not needed if the memory has a file
  int protection = 0;
  bool is_plain = true;   ///< the memory has no file behind it
  bool has_huge = false;  ///< the place already has huge pages, even if the memory was never touched
  MemoryAdvice advice{};
};

struct Exchanged {
  std::size_t bytes = 0;  ///< exchanged, from the start of the memory; all of it unless one of the errors is set
  int guard_error = 0;    ///< EMFILE, ENFILE, ENOMEM: there is no guard for lack of that, so stores would not wait
  int copy_error = 0;     ///< EFAULT: the memory cannot be read; ENOMEM: there is no memory for the copy
  int map_error = 0;  ///< EINVAL: the kernel refuses (hugetlbfs); ENOMEM, EAGAIN: too many mappings, or too much locked
};

/// Exchanges the pages. `memory` may include the caller's stack, the heap, and memory of the library itself.
Exchanged exchange_pages(const PageExchange& exchange) noexcept;

}  // namespace wherry::memory
