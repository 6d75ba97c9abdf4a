// SPDX-License-Identifier: Apache-2.0
//
// wherry mpirun: starts an unmodified MPI program whose messages go over Wherry, by its own MPI's launcher.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/printable.hpp"
#include "commands.hpp"
#include "mpirun/job.hpp"
#include "mpirun/program.hpp"
#include "run/exit_status.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

int cannot_run(const std::string& program, int error) {
  fmt::print(stderr, "wherry mpirun: cannot run {}: {}\n", printable(program), std::strerror(error));
  return status_of_exec(error);
}

/// 0, or why execvp would not run the file.
int obstacle(const std::filesystem::path& program) {
  if (program.empty()) return ENOENT;
  std::error_code error;
  if (std::filesystem::is_directory(program, error)) return EACCES;
  return access(program.c_str(), X_OK) == 0 ? 0 : errno;
}

/// Words that begin with a hyphen, up to the next --, are the launcher's.
void take_launcher_options(MpiJob& job) {
  auto& words = job.program;
  if (!words.front().starts_with('-')) return;
  const auto end = std::find(words.begin(), words.end(), "--");
  if (end == words.end() || end + 1 == words.end()) {
    throw Error(EINVAL, "pass on", words.front(),
                "options of the MPI's launcher stand between -- and --, before the program");
  }
  job.launcher_options.assign(words.begin(), end);
  words.erase(words.begin(), end + 1);
}

// Replaces this process, so that the exit status and the signals are the launcher's.
int execute(const LauncherCommand& command) {
  for (const auto& [name, value] : command.variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command.words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  return cannot_run(command.words.front(), errno);
}

int run(MpiJob job, bool only_print) {
  try {
    if (!job.budget.empty()) (void)config::parse_bytes("--budget", job.budget);
    take_launcher_options(job);
    const auto program = find_program(job.program.front());
    if (const int error = obstacle(program)) return cannot_run(job.program.front(), error);
    allow_files_for(job.processes);
    const LauncherCommand command = plan(job, program);
    if (!only_print) return execute(command);
    fmt::print("{}", command.text());
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "wherry mpirun: {}\n", printable(error.what()));
    return kStartFailed;
  }
}

}  // namespace

Action add_mpirun(CLI::App& command) {
  auto job = std::make_shared<MpiJob>();
  auto only_print = std::make_shared<bool>(false);
  command.add_option("-n,--np", job->processes, "How many processes to start")->required()->check(CLI::Range(1, 65536));
  command
      .add_option(
          "--layout", job->layout,
          "How a process divides its buffer among those that send to it: topology, by what the program declares "
          "with MPI_Cart_create and the like; adaptive, by who is seen to send; equal")
      ->check(CLI::IsMember({"topology", "adaptive", "equal"}))
      ->capture_default_str();
  command.add_option("--budget", job->budget, "Bytes of each process's buffer, as 384K");
  command.add_option(
      "--mpi", job->mpi,
      "The MPI of a program that was not linked with one itself, such as a script: mpich, openmpi or the "
      "path of its launcher; else the first mpiexec in PATH");
  command.add_flag("--print", *only_print, "Print what would be set and run, and run nothing");
  command
      .add_option("PROGRAM", job->program,
                  "The program and its arguments; options for the MPI's launcher stand before it between -- and --")
      ->required();
  command.positionals_at_end();
  command.footer(
      "Exit status: the launcher's own; 125 if an option is not valid or something is missing, 126 if the program "
      "cannot\n"
      "be executed, 127 if it is not found.");
  return [job, only_print] { return run(*job, *only_print); };
}

}  // namespace wherry::tools
