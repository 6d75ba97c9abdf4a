// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::memory {

/// Whether a descriptor from a peer is memory of exactly `bytes` that cannot be taken away again: a memfd of tmpfs,
/// sealed against resizing. Huge pages may run out under a mapping that exists already. What is no memfd is asked for
/// nothing but seals: its file system may never answer.
bool is_sealed_memory(int descriptor, std::uint64_t bytes);

}  // namespace wherry::memory
