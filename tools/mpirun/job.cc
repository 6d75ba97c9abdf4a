// SPDX-License-Identifier: Apache-2.0
#include "mpirun/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>

#include <wherry/error.hpp>

#include "common/environment.hpp"
#include "mpirun/launcher.hpp"
#include "mpirun/library.hpp"
#include "mpirun/program.hpp"
#include "mpirun/shell.hpp"

namespace wherry::tools {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::string before(const std::string& value, const std::string& rest) {
  return rest.empty() ? value : value + ":" + rest;
}

bool has_too_few_cores(const MpiJob& job) {
  return job.processes > static_cast<int>(std::thread::hardware_concurrency());
}

std::filesystem::path installed(const char* name) {
  const auto library = library_folder() / "mpi" / name;
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    throw Error(ENOENT, "use", library.string(), "install it beside this program (make install)");
  }
  return library;
}

/// Chooses the program's own MPI. For a program that starts others, such as python: the MPI of the chosen launcher.
std::pair<Launcher, std::optional<MpiLibrary>> choose(const MpiJob& job, const std::filesystem::path& program) {
  const auto library = mpi_of_program(program);
  if (!library) {
    if (job.mpi.empty()) require_starter(program);
    const Launcher launcher = launcher_for(job.mpi, interpreter_of(program));
    return {launcher, mpi_beside_launcher(launcher.path, launcher.family)};
  }
  if (job.mpi.empty() || job.mpi == "mpich" || job.mpi == "openmpi") {
    if (!job.mpi.empty() && (job.mpi == "mpich") != (library->family == MpiFamily::mpich)) {
      throw Error(EINVAL, "use --mpi", job.mpi,
                  fmt::format("the program was linked with {}, {}", name_of(library->family), library->path.string()));
    }
    return {launcher_of(*library), library};
  }
  const Launcher launcher = launcher_for(job.mpi, program);
  if (launcher.family != library->family) {
    throw Error(EINVAL, "use --mpi", job.mpi,
                fmt::format("the program was linked with {}, {}", name_of(library->family), library->path.string()));
  }
  return {launcher, library};
}

void set_for_all(const MpiJob& job, const std::filesystem::path& provider, Variables& variables) {
  variables.emplace_back("FI_PROVIDER_PATH", before(provider.parent_path().string(), value_of("FI_PROVIDER_PATH")));
  variables.emplace_back("FI_PROVIDER", "wherry");
  variables.emplace_back("WHERRY_MPI_LAYOUT", job.layout);
  if (!job.budget.empty()) variables.emplace_back("WHERRY_MPI_BUDGET", job.budget);
  // A job runs on this machine, even if WHERRY_HOSTS names other machines for other programs.
  if (!value_of("WHERRY_HOSTS").empty() && value_of("WHERRY_FABRIC").empty())
    variables.emplace_back("WHERRY_FABRIC", "shm");
}

/// With more processes than cores, buffers compete for the caches. Messages longer than a section are read from the
/// sender's memory, so small buffers are as fast.
void set_for_oversubscription(const MpiJob& job, Variables& variables) {
  if (job.budget.empty() && value_of("WHERRY_MPI_BUDGET").empty()) variables.emplace_back("WHERRY_MPI_BUDGET", "16K");
}

/// Sets LD_PRELOAD for the launcher too. Open MPI's options for variables reach only the first program of a job, not
/// the processes that it spawns. The launcher makes no call that the library replaces.
void set_preload(Variables& variables) {
  variables.emplace_back("LD_PRELOAD", before(installed("libwherry-topology.so").string(), value_of("LD_PRELOAD")));
}

/// Without NOLOCAL MPICH uses its own shared memory on one machine. MPIR_CVAR_ENABLE_HEAVY_YIELD is not set: with it
/// MPICH sleeps whenever it finds no message, but the provider itself sleeps until one arrives.
void set_for_mpich(Variables& variables) {
  variables.emplace_back("MPIR_CVAR_CH4_NETMOD", "ofi");
  variables.emplace_back("MPIR_CVAR_NOLOCAL", "1");
}

/// Open MPI 4 and 5 have different variables for the provider, and each ignores the other's.
void set_for_openmpi(const MpiJob& job, Variables& variables) {
  variables.emplace_back("OMPI_MCA_pml", "cm");
  variables.emplace_back("OMPI_MCA_mtl", "ofi");
  variables.emplace_back("OMPI_MCA_opal_common_ofi_provider_include", "wherry");
  variables.emplace_back("OMPI_MCA_mtl_ofi_provider_include", "wherry");
  if (!has_too_few_cores(job)) return;
  variables.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  // The eager limit of Open MPI's own shared memory.
  if (value_of("WHERRY_MPI_EAGER").empty()) variables.emplace_back("WHERRY_MPI_EAGER", "4K");
}

void refuse_root(const Launcher& launcher) {
  if (geteuid() != 0 ||
      (!value_of("OMPI_ALLOW_RUN_AS_ROOT").empty() && !value_of("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM").empty()))
    return;
  throw Error(
      EPERM, "run as root", launcher.path.string(),
      "Open MPI runs nothing as root unless OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set");
}

bool says(const std::vector<std::string>& options, std::string_view option) {
  return std::ranges::any_of(options, [&](const std::string& word) { return word.starts_with(option); });
}

void add_openmpi_options(const MpiJob& job, const Launcher& launcher, std::vector<std::string>& words) {
  if (!has_too_few_cores(job)) return;
  if (launcher.major() < 5) {
    words.emplace_back("--oversubscribe");
  } else if (!says(job.launcher_options, "--map-by")) {
    words.insert(words.end(), {"--map-by", ":OVERSUBSCRIBE"});
  }
  if (!says(job.launcher_options, "--bind-to")) words.insert(words.end(), {"--bind-to", "none"});
}

}  // namespace

std::string LauncherCommand::text() const {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("{}={} \\\n", name, shell_quoted(value));
  return text + shell_line(words) + "\n";
}

LauncherCommand plan(const MpiJob& job, const std::filesystem::path& program) {
  const auto [launcher, library] = choose(job, program);
  if (library) require_libfabric(*library);
  if (launcher.family == MpiFamily::openmpi) refuse_root(launcher);
  allow_files_for(job.processes, launcher.family);
  LauncherCommand command;
  set_for_all(job, installed("libwherry-fi.so"), command.variables);
  if (has_too_few_cores(job)) set_for_oversubscription(job, command.variables);
  if (job.layout == "topology") set_preload(command.variables);
  command.words = {launcher.path.string(), "-n", std::to_string(job.processes)};
  if (launcher.family == MpiFamily::mpich) {
    set_for_mpich(command.variables);
  } else {
    set_for_openmpi(job, command.variables);
    add_openmpi_options(job, launcher, command.words);
  }
  command.words.insert(command.words.end(), job.launcher_options.begin(), job.launcher_options.end());
  command.words.insert(command.words.end(), job.program.begin(), job.program.end());
  return command;
}

}  // namespace wherry::tools
