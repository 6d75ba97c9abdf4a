// SPDX-License-Identifier: Apache-2.0
//
// A copy that returns an error if it meets a page fault which the kernel cannot serve, instead of ending the process.
// It is machine code without a stack frame. The signal handler finds the faulting instruction in it and resumes at its
// failure exit. So nothing is saved before a copy. A handler of the program that interrupts a copy may make another
// one, or leave by siglongjmp.
#pragma once

#include <cstddef>

namespace wherry::file::mapped {

/// Whether this machine has such a copy: only x86-64. Other machines map nothing.
bool can_guard_copies() noexcept;

/// Copies `bytes`; the ranges must not overlap. Returns false if a page of either range raised SIGBUS or SIGSEGV; then
/// an unknown part of `to` is written. Requires a CopyUnderWay (copies_under_way.hpp), during which takes_faults()
/// (fault_signals.hpp) has returned true. Async-signal-safe.
bool copy_or_fault(void* to, const void* from, std::size_t bytes) noexcept;

/// For the signal handler: if the context is in a guarded copy, moves it to the copy's failure exit.
bool resume_after_fault(void* context) noexcept;

}  // namespace wherry::file::mapped
