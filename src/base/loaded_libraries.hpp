// SPDX-License-Identifier: Apache-2.0
//
// The libraries that the dynamic loader has loaded into this process, read from its own tables: for libraries that are
// preloaded into other programs. No call here takes a lock, allocates or makes a system call. So a hook may use them in
// a signal handler, in the child of a fork and before main. dlsym and dladdr give none of these guarantees, and dlsym
// for a hundred functions takes 0.1 ms of each process.
//
// "This library" is the one that these functions are linked into.
#pragma once

namespace wherry {

struct NextSymbol {
  void* address = nullptr;        ///< null: no library has it
  const void* library = nullptr;  ///< identifies the library
  bool is_certain = true;         ///< false: only dlsym can tell
};

/// Returns the function that the program would call by this name without this library: dlsym(RTLD_NEXT, name).
NextSymbol next_symbol(const char* name) noexcept;

/// Whether the program or a library that it was started with defines the symbol.
bool any_library_defines(const char* symbol) noexcept;

/// Whether the program or a library that it was started with needs a library whose name begins with `beginning`.
bool any_library_needs(const char* beginning) noexcept;

/// Whether the address is in a library whose file name begins with `beginning`. Finds libraries added by dlopen, too.
/// False with a C library older than 2.35.
bool is_in_library(const void* address, const char* beginning) noexcept;

/// Returns the path from which this library was loaded; null if it is not in the loader's list. The loader owns the
/// text.
const char* path_of_this_library() noexcept;

}  // namespace wherry
