// SPDX-License-Identifier: Apache-2.0
//
// wherry mpirun: translates its command line into that of the MPI's own launcher, with the environment.
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
  std::string mpi;     ///< mpich, openmpi, a launcher's path; empty: the MPI that the program was linked with
  std::vector<std::string> launcher_options;
  std::vector<std::string> program;  ///< with its arguments
};

struct LauncherCommand {
  std::vector<std::pair<std::string, std::string>> variables;  ///< environment variables, in display order
  std::vector<std::string> words;                              ///< the launcher's path and arguments

  /// The command as shell input.
  [[nodiscard]] std::string text() const;
};

/// Returns the launcher's command for the job. `program` is the file of the first word of job.program. Raises this
/// process's limit of open files as far as the job needs. Throws Error that names the missing part.
LauncherCommand plan(const MpiJob& job, const std::filesystem::path& program);

}  // namespace wherry::tools
