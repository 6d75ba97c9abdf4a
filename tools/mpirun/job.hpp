// SPDX-License-Identifier: Apache-2.0
//
// wherry mpirun: from a command line of ours to the one of the MPI's own launcher, and what to set for it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace wherry::tools {

struct MpiJob {
  int processes = 0;
  std::string layout = "topology";
  std::string budget;  ///< as on the command line; empty: the provider's default
  std::string mpi;     ///< mpich, openmpi, a launcher's path, or empty: what the program was linked with
  std::vector<std::string> launcher_options;
  std::vector<std::string> program;  ///< and its arguments
};

struct LauncherCommand {
  std::vector<std::pair<std::string, std::string>> variables;  ///< of the environment, in the order they are shown
  std::vector<std::string> words;                              ///< the launcher's path and arguments

  /// As a shell would take it.
  [[nodiscard]] std::string text() const;
};

/// `program` is the file that the first word of job.program names. Raises this process's limit of open files as far as
/// the job needs. Throws Error that says what is missing.
LauncherCommand plan(const MpiJob& job, const std::filesystem::path& program);

}  // namespace wherry::tools
