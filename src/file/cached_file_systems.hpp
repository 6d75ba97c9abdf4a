// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/magic.h>

namespace wherry::file {

/// Whether the blocks of files on a file system of that type (statfs) may be cached: each change stamps the file, by
/// the clock that Stamp::now reads.
constexpr bool can_be_cached(long type) {
  constexpr long kXfs = 0x58465342;  // XFS_SUPER_MAGIC, which no header of the kernel's has
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

}  // namespace wherry::file
