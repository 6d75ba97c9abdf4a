// SPDX-License-Identifier: Apache-2.0
//
// A process that this library serves no more, in which all calls are the kernel's.
#pragma once

namespace wherry::preload {

/// Unmaps all files of this process for good, and gives the kernel all offsets, and the program's actions for SIGBUS
/// and SIGSEGV once no thread is in the middle of a copy. In the child of a vfork this does nothing. Keeps errno.
void step_aside() noexcept;

/// While a filter of system calls may be set: steps aside first, and afterwards no system call is made on behalf of
/// this library, which the filter could forbid. Programs that are executed then run without the library.
class FilterBegins {
 public:
  FilterBegins() noexcept;
  FilterBegins(const FilterBegins&) = delete;
  FilterBegins& operator=(const FilterBegins&) = delete;
  /// What follows the call that sets it, with its result; returns it.
  long ended(long result) const noexcept;

 private:
  bool before_;
};
bool is_filtered() noexcept;

/// Unmaps all files, and maps none from now on: memory is going to be locked or limited. Keeps errno.
void unmap_for_good() noexcept;

}  // namespace wherry::preload
