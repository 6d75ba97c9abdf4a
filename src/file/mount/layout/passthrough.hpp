// SPDX-License-Identifier: Apache-2.0
// Definitions that linux/fuse.h has from 7.40 (Linux 6.9) on, and that Debian 12 lacks.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace wherry::layout {

inline constexpr std::uint32_t kFusePassthrough = 1U << 5;      ///< FUSE_PASSTHROUGH, in flags2 of both INIT messages
inline constexpr std::uint32_t kFuseOpenPassthrough = 1U << 7;  ///< FOPEN_PASSTHROUGH

/// Follows flags2 in fuse_init_out: how many file systems, including this one, may be stacked.
struct FuseInitStack {
  std::uint32_t flags2;
  std::uint32_t max_stack_depth;
};
static_assert(sizeof(FuseInitStack) == 8);

/// fuse_open_out.
struct FuseOpened {
  std::uint64_t handle;
  std::uint32_t flags;
  std::int32_t backing;
};
static_assert(sizeof(FuseOpened) == 16);

/// fuse_backing_map.
struct FuseBacking {
  std::int32_t descriptor;
  std::uint32_t flags;
  std::uint64_t reserved;
};
static_assert(sizeof(FuseBacking) == 16);

inline constexpr unsigned long kFuseBackingOpen = _IOW(229, 1, FuseBacking);     ///< returns the backing's number
inline constexpr unsigned long kFuseBackingClose = _IOW(229, 2, std::uint32_t);  ///< takes the backing's number

}  // namespace wherry::layout
