// SPDX-License-Identifier: Apache-2.0
//
// Calls that may make a file shorter: readers of mappings, in any process of the user, then check its size again.
#pragma once

namespace wherry::preload {

/// To be called after a call that may have made the file of a descriptor shorter. Keeps errno.
void shortened(int fd) noexcept;
/// The same by name, through symbolic links.
void shortened(const char* path) noexcept;
/// The same for an unknown file. Takes 0.2 ms.
void any_shortened() noexcept;

}  // namespace wherry::preload
