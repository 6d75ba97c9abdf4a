// SPDX-License-Identifier: Apache-2.0
//
// Writers whose calls never pass a hook: stdio, shared mappings, asynchronous calls, programs without this library.
// Their files, or all files, are not cached as long as they can write.
#pragma once

#include <sys/types.h>

namespace wherry::preload {

/// The C library itself writes to this number from now on (a FILE), or no longer does. Standard output and standard
/// error are such from the beginning.
void stdio_writes(int fd) noexcept;
void stdio_writes_no_more(int fd) noexcept;

/// The number was given to a file by a call that was hooked: to be called after each such call that succeeded.
void number_taken(int fd) noexcept;

/// A mark taken off a number that is going to be closed: ended when this object is, after the kernel's call.
class MarkOfClosed {
 public:
  explicit MarkOfClosed(int fd) noexcept;
  ~MarkOfClosed();
  MarkOfClosed(const MarkOfClosed&) = delete;
  MarkOfClosed& operator=(const MarkOfClosed&) = delete;

 private:
  unsigned long mark_ = 0;
};

/// The file can be written by way of a mapping, until this process ends or executes another program.
void mapped_to_write(int fd) noexcept;

/// This process has calls that write without being seen: nothing is cached while it lives.
void writes_unseen() noexcept;

/// This process is about to execute a program that cannot be seen, or to make a child that does: nothing is cached
/// until it has ended, or failed.
void unseen_program_begins() noexcept;
/// It is this child.
void unseen_program_is(pid_t child) noexcept;
/// A child has ended, or (0) this process failed to execute it.
void unseen_program_ended(pid_t child) noexcept;

/// Where the program was started with standard output or standard error open to write to a file.
void mark_standard_streams() noexcept;

/// In a forked child: what its parent may write unseen, it may write too.
void repair_marks_after_fork() noexcept;

}  // namespace wherry::preload
