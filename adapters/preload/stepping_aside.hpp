// SPDX-License-Identifier: Apache-2.0
//
// Ends the library's work in a process: from then on all calls are the kernel's.
#pragma once

namespace wherry::preload {

/// Unmaps all files of this process for good, and returns all offsets to the kernel. Restores the program's actions for
/// SIGBUS and SIGSEGV once no thread is copying. Does nothing in the child of a vfork. Keeps errno.
void step_aside() noexcept;

/// Exists while a filter of system calls may be set. Steps aside first; afterwards this library makes no system call of
/// its own, which the filter could forbid. Programs that are executed then run without the library.
class FilterBegins {
 public:
  FilterBegins() noexcept;
  FilterBegins(const FilterBegins&) = delete;
  FilterBegins& operator=(const FilterBegins&) = delete;
  /// To be called after the call that sets the filter, with its result, which it returns.
  long ended(long result) const noexcept;

 private:
  bool before_;
};
bool is_filtered() noexcept;

/// Unmaps all files, and maps none from now on, because memory is going to be locked or limited. Keeps errno.
void unmap_for_good() noexcept;

}  // namespace wherry::preload
