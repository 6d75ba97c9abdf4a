// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::memory {

/// Whether a descriptor from a peer is a memfd on tmpfs of exactly `bytes`, sealed against resizing: its memory cannot
/// vanish under a mapping. Memfds on hugetlbfs are refused, since huge pages may run out after the mapping. Of a file
/// that is no memfd, only the seals are queried, since a call to its file system may block forever.
bool is_sealed_memory(int descriptor, std::uint64_t bytes);

}  // namespace wherry::memory
