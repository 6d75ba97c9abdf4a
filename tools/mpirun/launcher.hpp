// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "mpirun/library.hpp"

namespace wherry::tools {

/// An MPI's own mpiexec.
struct Launcher {
  std::filesystem::path path;
  MpiFamily family;
  std::string version;  ///< as the launcher reports it, such as 5.0.11

  /// Open MPI 4 and 5 have different options.
  [[nodiscard]] int major() const;
};

/// Runs a program with --version to find out its MPI. Empty: it is not a launcher of either family.
std::optional<Launcher> ask_launcher(const std::filesystem::path& path);

/// Returns the launcher of this library: in a bin folder above it, else in PATH. From PATH, Open MPI's launcher must
/// have the library's version. Throws Error if there is none.
Launcher launcher_of(const MpiLibrary& library);

/// Returns the launcher for a program that was not linked with an MPI, such as python. `word` is a family (mpich,
/// openmpi) or the path of a launcher. Empty: the launcher beside `program` in a virtual environment, else the first in
/// PATH. Throws Error if there is none.
Launcher launcher_for(const std::string& word, const std::filesystem::path& program);

}  // namespace wherry::tools
