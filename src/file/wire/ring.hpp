// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry::file {

/// Of the rings of both sides, unless a user says otherwise: some pieces of data. A larger one is no faster: all of its
/// pages are touched in turn, and with many clients they leave the processor's caches.
inline constexpr std::size_t kRingBytes = std::size_t{512} << 10;

}  // namespace wherry::file
