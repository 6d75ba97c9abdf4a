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
  std::string version;  ///< as it says it, such as 5.0.11

  /// Open MPI 4 and 5 have different options.
  [[nodiscard]] int major() const;
};

/// What a program says of itself when it is asked for its version. Empty: it is no launcher of either family.
std::optional<Launcher> ask_launcher(const std::filesystem::path& path);

/// The launcher of this very library: in a bin folder above it, else in PATH, where Open MPI's must be of the library's
/// version. Throws Error if there is none.
Launcher launcher_of(const MpiLibrary& library);

/// The launcher for a program that says nothing of its MPI, such as python: `word` is a family, mpich or openmpi, or
/// the path of a launcher; empty: the one beside `program` in a virtual environment, else the first in PATH. Throws
/// Error if there is none.
Launcher launcher_for(const std::string& word, const std::filesystem::path& program);

}  // namespace wherry::tools
