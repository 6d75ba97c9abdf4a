// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::arch {

/// Fetches the cache line of `address` for a read soon. A hint: it orders nothing and cannot fault.
inline void prefetch(const void* address) { __builtin_prefetch(address); }

}  // namespace wherry::arch
