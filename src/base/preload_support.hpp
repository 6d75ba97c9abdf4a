// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether a program will load the preloaded library when it is executed. This code uses neither exceptions
// nor the heap.
#pragma once

#include <string_view>

namespace wherry {

enum class PreloadSupport : unsigned char {
  supported,     ///< its loader will load the library
  ignored,       ///< static, Go, setuid or similar, or of another kind: its calls pass no hook
  incompatible,  ///< its loader is not glibc's, and cannot load this library
};

/// Judges the program that execve would execute for `path`, relative to the directory `at`; follows the interpreters of
/// scripts. A file that cannot be read is `ignored`. Makes system calls only; keeps errno.
PreloadSupport preload_support_of(int at, const char* path, int flags) noexcept;

/// Whether a program's notes (PT_NOTE) include Go's. Go's runtime makes its system calls itself, even if the program is
/// linked with libc.
bool has_note_of_go(std::string_view notes) noexcept;

/// Returns the file that execvp would execute: `name` itself if it contains a slash, else the file found in PATH,
/// written to `room` (PATH_MAX bytes). Null if there is none.
const char* find_in_path(const char* name, char* room) noexcept;

}  // namespace wherry
