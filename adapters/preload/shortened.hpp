// SPDX-License-Identifier: Apache-2.0
//
// Calls that may make a file shorter: readers of mappings, in any process of the user, then ask for its size again.
#pragma once

namespace wherry::preload {

/// After a call that may have made the file of a descriptor shorter. Keeps errno.
void shortened(int fd) noexcept;
/// The same by its name, through symbolic links.
void shortened(const char* path) noexcept;
/// The same of a file that is not known. It costs 0.2 ms.
void any_shortened() noexcept;

}  // namespace wherry::preload
