// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that take addresses away, whatever is mapped there: a program may name addresses that it has not
// reserved, and that a file is mapped at by now. Other calls cost a look at the flags, or at the list of mappings.
#include <sys/mman.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstddef>

#include "descriptors.hpp"
#include "file/mapped/regions.hpp"
#include "hook.hpp"
#include "next.hpp"

using namespace wherry::preload;

namespace {

void give_up(const void* begin, std::size_t bytes) {
  wherry::file::mapped::give_up_regions(begin, bytes, revoke_mapping);
}

bool names_place(int flags) { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }

}  // namespace

WHERRY_HOOK void* mmap(void* place, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (names_place(flags)) give_up(place, bytes);
  return WHERRY_NEXT(mmap, place, bytes, protection, flags, fd, offset);
}

WHERRY_HOOK void* mmap64(void* place, std::size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  if (names_place(flags)) give_up(place, bytes);
  return WHERRY_NEXT(mmap64, place, bytes, protection, flags, fd, offset);
}

// A second munmap of the same addresses does nothing natively.
WHERRY_HOOK int munmap(void* place, std::size_t bytes) noexcept {
  give_up(place, bytes);
  return WHERRY_NEXT(munmap, place, bytes);
}

WHERRY_HOOK void* mremap(void* place, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const new_place = va_arg(arguments, void*);
  va_end(arguments);
  if ((flags & MREMAP_FIXED) != 0) give_up(new_place, new_bytes);
  return WHERRY_NEXT(mremap, place, bytes, new_bytes, flags, new_place);
}
