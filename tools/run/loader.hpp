// SPDX-License-Identifier: Apache-2.0
//
// What the shell and the dynamic loader would find, asked before a program is started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wherry::tools {

/// The folders of PATH, in its order.
std::vector<std::filesystem::path> program_folders();

/// The file that execvp would run: itself if it has a slash in it, else found in PATH. Empty if there is none.
std::filesystem::path find_program(const std::string& name);

/// All that a program writes to its standard output; its other output is dropped. Empty if it cannot be run. `words`
/// are its path and arguments.
std::string output_of(const std::vector<std::string>& words);

struct SharedLibrary {
  std::string name;            ///< as another library or the program needs it: a soname
  std::filesystem::path path;  ///< empty: the loader does not find it
};

/// The shared libraries that a program, or a shared library, comes with: those that it needs, those that they need, and
/// so on, as the dynamic loader finds them with the environment as it is. None if it has no dynamic loader, a script
/// for example.
std::vector<SharedLibrary> libraries_of(const std::filesystem::path& file);

}  // namespace wherry::tools
