// SPDX-License-Identifier: Apache-2.0
// The file of a card's segment: made whole, or not at all.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::file {

inline constexpr std::uint64_t kLeastCache = std::uint64_t{1} << 20;

/// Makes a segment whose blocks take at most `bytes` (rounded down to a power of two, at least kLeastCache), and gives
/// it its name when it is complete: tables are allocated, blocks are when they are filled. It is locked (flock), as the
/// card that has it holds it. Invalid: there is a file of that name. Throws Error.
UniqueFd make_segment(const std::string& path, std::uint64_t bytes);

/// The default size of a cache: a quarter of the memory, or of the least limit of a control group, at most 1 GiB;
/// and no more than half of what is free in /dev/shm.
std::uint64_t default_cache_bytes();

}  // namespace wherry::file
