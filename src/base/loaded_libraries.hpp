// SPDX-License-Identifier: Apache-2.0
//
// What the dynamic loader has loaded into this process, read from its own tables: for libraries that are preloaded into
// other programs. No call here takes a lock, allocates or makes a system call, so that a hook may use them in a signal
// handler, in the child of a fork and before the program begins. dlsym and dladdr are none of that, and dlsym for a
// hundred functions takes 0.1 ms of each process.
//
// "This library" is the one that these functions are linked into.
#pragma once

namespace wherry {

struct NextSymbol {
  void* address = nullptr;        ///< null: no library has it
  const void* library = nullptr;  ///< tells libraries apart
  bool is_certain = true;         ///< false: only dlsym can tell
};

/// The function that the program would call by this name without this library: dlsym(RTLD_NEXT, name).
NextSymbol next_symbol(const char* name) noexcept;

/// True if the program or a library that it was started with defines the symbol.
bool any_library_defines(const char* symbol) noexcept;

/// True if the program or a library that it was started with needs a library whose name begins so.
bool any_library_needs(const char* beginning) noexcept;

/// The path by which this library was loaded; null if it is not in the loader's list. The loader owns it.
const char* path_of_this_library() noexcept;

}  // namespace wherry
