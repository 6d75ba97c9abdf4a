// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::fabric::ofi {

/// Lets libfabric find no /proc/kallsyms. Version 1 looks through it twice at its first call, for a driver of memory of
/// graphics cards, which no provider used here needs: 5 MB that the kernel prints anew, 0.2 s of CPU time, more than
/// all else that a short program does. `library` is dlopen's and not in use yet. Where it cannot be done nothing
/// changes.
void hide_kernel_symbols(void* library) noexcept;

}  // namespace wherry::fabric::ofi
