// SPDX-License-Identifier: Apache-2.0
#include "mapped_lease.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace wherry::root {

void MappedLease::unload(std::size_t place, std::size_t size) const {
  // A failure is harmless: the pages stay resident.
  (void)::madvise(at(place), end_of_place(size), MADV_DONTNEED);
}

std::shared_ptr<MappedWindow> MappedWindows::map(Windows windows, std::uint64_t offset, std::size_t bytes) {
  auto known = std::find_if(windows_.begin(), windows_.end(), [&](const Window& one) { return one.offset == offset; });
  if (known == windows_.end()) {
    if (windows_.size() == kMost) windows_.pop_front();
    known = windows_.insert(windows_.end(), {.offset = offset, .mapped = std::make_shared<MappedWindow>()});
  }
  if (known->mapped->bytes().size() < bytes) {
    known->mapped = std::make_shared<MappedWindow>(windows.map(offset, bytes));
  }
  windows_.splice(windows_.end(), windows_, known);
  return known->mapped;
}

}  // namespace wherry::root
