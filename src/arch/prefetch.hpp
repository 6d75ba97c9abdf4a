// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::arch {

/// Asks for the cache line of `address`, to read it soon. A hint: orders nothing, and cannot fault.
inline void prefetch(const void* address) { __builtin_prefetch(address); }

}  // namespace wherry::arch
