// SPDX-License-Identifier: Apache-2.0
//
// A process that this library serves no more, in which all calls are the kernel's.
#pragma once

namespace wherry::preload {

/// Nothing of this process is mapped any more, all offsets are the kernel's, and from now on no system call is made on
/// its behalf: a filter of system calls could end it. Keeps errno.
void step_aside() noexcept;
bool stands_aside() noexcept;

/// Unmaps all files, and maps none from now on: memory is going to be locked or limited. Keeps errno.
void unmap_for_good() noexcept;

}  // namespace wherry::preload
