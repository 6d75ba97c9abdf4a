// SPDX-License-Identifier: Apache-2.0
// The advice that a program has given the kernel for its memory by madvise and mlock. It would be lost when pages of
// the arena replace the mapping. May include: base.
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

/// Returns the advice for memory within `mapping`, which must be current. The kernel reports the flags only in smaps, a
/// text about all mappings that takes milliseconds. So this gives a page of the mapping the same advice: if the kernel
/// splits the mapping, the flag was not set, and the page's advice is taken back. Costs 4 us if AddressMap::is_quick().
/// A mapping of one page cannot be split, and is looked up in smaps. Throws Error(EMFILE, ENFILE, ENOMEM).
MemoryAdvice advice_of(const AddressMap& map, const MappedRange& mapping);

/// Gives other memory the same advice. Locks pages that are present at once, and others when they are touched.
void give(const MemoryAdvice& advice, std::span<std::byte> memory) noexcept;

}  // namespace wherry::memory
