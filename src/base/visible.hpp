// SPDX-License-Identifier: Apache-2.0
//
// Whether a program will have the preloaded library in it when it is executed. This source uses
// neither exceptions nor the heap.
#pragma once

#include <string_view>

namespace wherry {

enum class Sight : unsigned char {
  seen,     ///< its loader will load the library
  unseen,   ///< linked statically, of Go, with other rights, of another kind: its calls pass no hook
  foreign,  ///< its loader is no glibc's, and could not load this library
};

/// Of the program that execve would execute for this name, relative to the directory `at`; follows the interpreters of
/// scripts. What cannot be read is unseen. Makes system calls only; keeps errno.
Sight look_at(int at, const char* path, int flags) noexcept;

/// Whether the notes of a program (PT_NOTE) have Go's: its runtime makes its system calls itself, also where the
/// program is linked with libc.
bool has_note_of_go(std::string_view notes) noexcept;

/// The file that execvp would execute: `name` itself if it has a slash in it, else found in PATH. It is written to
/// `room`, of PATH_MAX bytes, or is `name`. Null if there is none.
const char* find_in_path(const char* name, char* room) noexcept;

}  // namespace wherry
