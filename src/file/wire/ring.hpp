// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry::file {

/// Default size of the rings of both sides: a few pieces of data. A larger ring is not faster: all of its pages are
/// touched in turn, and with many clients they no longer fit in the processor's caches.
inline constexpr std::size_t kRingBytes = std::size_t{512} << 10;

}  // namespace wherry::file
