// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that take addresses, whatever is mapped there. A program may name addresses that it has not reserved,
// and at which a file is mapped by now. Other calls cost only a check of the flags, or of the list of mappings.
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "descriptors.hpp"
#include "file/mapped/regions.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "sharing.hpp"
#include "stepping_aside.hpp"
#include "write_rings.hpp"

using namespace wherry::preload;

namespace {

/// Makes the kernel's call, which maps something else at these addresses if it names a place. Under a filter of system
/// calls no file is mapped.
template <typename Call>
void* take_place(bool named, const void* begin, std::size_t bytes, Call call) {
  if (!named || is_filtered()) return call();
  give_up_rings(begin, bytes);
  const wherry::file::mapped::PlaceTaken taken(begin, bytes, revoke_mapping);
  return call();
}

bool names_place(int flags) { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }

/// Returns 0 if this process may not inspect the segment, and so cannot attach it either.
std::size_t bytes_of_segment(int segment) {
  shmid_ds status{};
  return shmctl(segment, IPC_STAT, &status) == 0 ? status.shm_segsz : 0;
}

}  // namespace

WHERRY_HOOK void* mmap(void* place, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) == 0) before_mapping(fd);
  return take_place(names_place(flags), place, bytes,
                    [&] { return WHERRY_NEXT(mmap, place, bytes, protection, flags, fd, offset); });
}

// give_up_regions() may have unmapped the addresses; a second munmap does nothing.
WHERRY_HOOK int munmap(void* place, std::size_t bytes) noexcept {
  give_up_rings(place, bytes);
  wherry::file::mapped::give_up_regions(place, bytes, revoke_mapping);
  return WHERRY_NEXT(munmap, place, bytes);
}

WHERRY_HOOK void* mremap(void* place, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const new_place = va_arg(arguments, void*);
  va_end(arguments);
  return take_place((flags & MREMAP_FIXED) != 0, new_place, new_bytes,
                    [&] { return WHERRY_NEXT(mremap, place, bytes, new_bytes, flags, new_place); });
}

WHERRY_HOOK void* shmat(int segment, const void* place, int flags) noexcept {
  const auto call = [&] { return WHERRY_NEXT(shmat, segment, place, flags); };
  if ((flags & SHM_REMAP) == 0 || is_filtered()) return call();
  // With SHM_RND the kernel rounds the address down. Without it an address within a page is an error.
  const auto* const begin = static_cast<const char*>(place) - reinterpret_cast<std::uintptr_t>(place) % SHMLBA;
  return take_place(true, begin, bytes_of_segment(segment), call);
}

WHERRY_OTHER_NAME(mmap64, mmap);
