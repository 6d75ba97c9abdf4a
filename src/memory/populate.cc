// SPDX-License-Identifier: Apache-2.0
#include "memory/populate.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <limits>

#include "base/found_once.hpp"
#include "memory/address_map.hpp"
#include "memory/arena_view.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

namespace wherry::memory {
namespace {

/// The C library answers without a system call.
std::uintptr_t page_size() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

/// From this size on, asking for the mapping is faster than populating every page (0.2 us, and 40 ns per page). Asking
/// takes 0.25 us; on older kernels, which report mappings as text, 50 us and more.
std::size_t large() { return AddressMap::own().is_quick() ? std::size_t{16} << 10 : std::size_t{8} << 20; }

/// Whether the mappings allow the access. For Linux before 5.14, and for mappings of devices, which have no pages.
bool mapped_for(std::uintptr_t start, std::uintptr_t end, Access access) {
  const int wanted = access == Access::write ? PROT_WRITE : PROT_READ;
  while (start < end) {
    const auto range = AddressMap::own().at(start);
    if (!range || (range->protection & wanted) == 0) return false;
    start = range->end;
  }
  return true;
}

/// Whether all of the memory lies in mappings, at most `most`, that allow the access and cannot lose pages: private
/// mappings without a file, and mappings of arenas.
bool cannot_vanish(std::span<const std::byte> memory, Access access, int most) {
  const int wanted = access == Access::write ? PROT_WRITE : PROT_READ;
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
  std::uintptr_t known = start;
  for (int asked = 0; known - start < memory.size(); ++asked) {
    if (asked == most) return false;
    const auto range = AddressMap::own().at(known);
    if (!range || (range->protection & wanted) == 0) return false;
    const bool is_private = range->file == FileIdentity{} && !range->shared;
    if (!is_private && !(range->shared && is_known_arena(range->file))) return false;
    known = range->end;
  }
  return true;
}

}  // namespace

bool populate(std::span<const std::byte> memory, Access access) {
  const std::uintptr_t page = page_size();
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size();
  if (end < start) return false;
  const std::size_t bytes = (end - start + page - 1) & ~(page - 1);
  const int advice = access == Access::write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  int result = 0;
  do {
    result = ::madvise(std::bit_cast<void*>(start), bytes, advice);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) return true;
  return errno == EINVAL && mapped_for(start, end, access);
}

bool can_populate() {
  static constinit FoundOnce<bool> known;
  return known.get([] {
    static const std::byte here{};
    const std::uintptr_t page = page_size();
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(&here) & ~(page - 1);
    return ::madvise(std::bit_cast<void*>(start), page, MADV_POPULATE_READ) == 0;
  });
}

bool is_there(std::span<const std::byte> memory, Access access) {
  // After a fork the heap may be two mappings. Asking for many mappings costs more than populating.
  constexpr int kFew = 3;
  if (memory.size() >= large() && cannot_vanish(memory, access, kFew)) return true;
  // While another thread exposes pages, stores there wait. If the guard does not hold the kernel (store_guard.hpp),
  // populating them fails, but an access by the caller would wait. So the mappings decide.
  return populate(memory, access) || cannot_vanish(memory, access, std::numeric_limits<int>::max());
}

}  // namespace wherry::memory
