// SPDX-License-Identifier: Apache-2.0
// What a program has told the kernel about its memory by madvise and mlock, which would be lost with the mapping. May
// include: base.
#pragma once

#include <cstddef>
#include <span>

#include "memory/address_map.hpp"

namespace wherry::memory {

struct MemoryAdvice {
  bool dont_fork = false;  ///< MADV_DONTFORK
  bool dont_dump = false;  ///< MADV_DONTDUMP
  bool locked = false;     ///< mlock, mlock2, mlockall
};

/// Of memory within `mapping`, which is as it is now. The kernel tells it of single flags only in a text about all
/// mappings, which takes milliseconds; so it is found out by what happens to the mapping when a page of it is advised
/// the same: nothing, or it falls into parts (which are joined again). Costs 4 us where AddressMap::is_quick(). Throws
/// Error(EMFILE, ENFILE, ENOMEM): a page that is a mapping of its own is looked up in that text.
MemoryAdvice advice_of(const AddressMap& map, const MappedRange& mapping);

/// Tells the kernel the same of other pages. Locks those that are there, and the others when they come.
void give(const MemoryAdvice& advice, std::span<std::byte> memory) noexcept;

}  // namespace wherry::memory
