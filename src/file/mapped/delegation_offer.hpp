// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::file::mapped {

/// Offers a mount memory in which it tells until when an open file is delegated (layout/delegation_page.hpp). The mount
/// keeps it as long as the file is open. Returns a descriptor of the memory, which the caller closes, or -1 with errno
/// set. Blocks as the mount does. The caller has disabled cancellation.
int offer_delegation_page(int fd) noexcept;

/// Whether the mount refuses this file for good: it is not on a mount of `wherry mount`, it is not read through the
/// page cache there, or the mount may not take memory of this process.
bool is_refused_for_good(int error) noexcept;

}  // namespace wherry::file::mapped
