// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::bench::file {

/// Mounts that this process and its children make from now on are seen by them alone, and gone with the last of them,
/// however it ends. Throws std::system_error where that is not permitted. For a process of one thread.
void keep_mounts_private();

/// FUSE_SUPER_MAGIC, of statfs(2).
inline constexpr long kFuseMagic = 0x65735546;

}  // namespace wherry::bench::file
