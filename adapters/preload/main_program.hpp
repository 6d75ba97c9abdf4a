// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

/// Whether the program's own runtime makes system calls past the C library, as that of Go does: descriptors are opened
/// and closed there without a hook. Looks at the notes of the program in memory.
bool goes_past_the_c_library() noexcept;

}  // namespace wherry::preload
