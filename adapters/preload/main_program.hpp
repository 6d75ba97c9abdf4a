// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

/// Whether the program's runtime makes system calls without the C library, as Go's does: it opens and closes
/// descriptors without a hook. Reads the notes of the program in memory.
bool goes_past_the_c_library() noexcept;

}  // namespace wherry::preload
