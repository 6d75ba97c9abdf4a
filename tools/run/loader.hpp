// SPDX-License-Identifier: Apache-2.0
//
// Finds programs and libraries as the shell and the dynamic loader do, before a program is started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wherry::tools {

/// The folders of PATH, in order.
std::vector<std::filesystem::path> program_folders();

/// The file that execvp would execute: `name` itself if it contains a slash, else a file in PATH. Empty if there is
/// none.
std::filesystem::path find_program(const std::string& name);

/// Runs a program and returns its standard output; its standard error is discarded. Empty if it cannot be run. `words`
/// are its path and arguments.
std::string output_of(const std::vector<std::string>& words);

struct SharedLibrary {
  std::string name;            ///< the soname by which the program or another library needs it
  std::filesystem::path path;  ///< empty: the loader does not find it
};

/// All shared libraries that a program or a shared library needs, directly or indirectly, as the dynamic loader finds
/// them in the current environment. Empty if the file has no dynamic loader, such as a script.
std::vector<SharedLibrary> libraries_of(const std::filesystem::path& file);

}  // namespace wherry::tools
