// SPDX-License-Identifier: Apache-2.0
// Keeps libfabric 1 from reading the kernel's symbols.
#pragma once

namespace wherry::fabric::ofi {

/// Replaces libfabric's import of fopen, so that /proc/kallsyms cannot be opened. Version 1 searches that file twice at
/// its first call, for InfiniBand's support of GPU memory. That costs 0.2 s of CPU time: the kernel formats 5 MB each
/// time. `library` is a handle of dlopen. No effect on hosts with InfiniBand, and where the import is not found.
void hide_kernel_symbols(void* library) noexcept;

}  // namespace wherry::fabric::ofi
