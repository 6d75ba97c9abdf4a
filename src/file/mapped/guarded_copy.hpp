// SPDX-License-Identifier: Apache-2.0
//
// A copy in which a page fault that the kernel cannot serve is a result, not the end of the process. Machine code
// without a stack frame: the signal handler finds the faulting instruction in it, and resumes at its failure exit. So
// nothing is saved before a copy, and a handler of the program's that interrupts one may copy too, or leave by
// siglongjmp.
#pragma once

#include <cstddef>

namespace wherry::file::mapped {

/// Whether this machine has such a copy: x86-64. Elsewhere nothing is mapped.
bool can_guard_copies() noexcept;

/// Copies `bytes`; the ranges must not overlap. Returns false if a page of either range raised SIGBUS or SIGSEGV: then
/// an unknown part of `to` is written. Requires takes_faults() (fault_signals.hpp), asked while a CopyUnderWay lives
/// (copies_under_way.hpp). Async-signal-safe.
bool copy_or_fault(void* to, const void* from, std::size_t bytes) noexcept;

/// For the signal handler: if the context stands in a guarded copy, moves it to the copy's failure exit.
bool resume_after_fault(void* context) noexcept;

}  // namespace wherry::file::mapped
