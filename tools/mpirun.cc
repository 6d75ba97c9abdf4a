// SPDX-License-Identifier: Apache-2.0
//
// wherry mpirun: starts an unmodified MPI program by its own MPI's launcher, so that its messages use Wherry.
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
#include "mpirun/hosts.hpp"
#include "mpirun/job.hpp"
#include "mpirun/program.hpp"
#include "mpirun/settings.hpp"
#include "mpirun/usage_error.hpp"
#include "run/exit_status.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

int cannot_run(const std::string& program, int error) {
  fmt::print(stderr, "wherry mpirun: cannot run {}: {}\n", printable(program), std::strerror(error));
  return status_of_exec(error);
}

/// Returns 0, or the error with which execvp would fail.
int obstacle(const std::filesystem::path& program) {
  if (program.empty()) return ENOENT;
  std::error_code error;
  if (std::filesystem::is_directory(program, error)) return EACCES;
  return access(program.c_str(), X_OK) == 0 ? 0 : errno;
}

/// Moves the launcher's options out of job.program: words that begin with a hyphen, up to the next --.
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

// Replaces this process, so that the exit status and the signals are those of the launcher.
int execute(const LauncherCommand& command) {
  for (const auto& [name, value] : command.variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command.words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  return cannot_run(command.words.front(), errno);
}

struct CommandLine {
  MpiJob job;
  std::string hostfile;
  std::string hosts;
  const CLI::Option* layout = nullptr;
  const CLI::Option* budget = nullptr;
  bool only_print = false;
};

/// `decided_by` is the option that set the number of processes, if one has.
void take_slots(MpiJob& job, const std::vector<Host>& hosts, const std::string& source, std::string& decided_by) {
  const int slots = slots_of(hosts, own_host_name(), source);
  if (!decided_by.empty()) {
    fmt::print(stderr, "wherry mpirun: {} names this machine only and is not used: {} says how many processes\n",
               printable(source), printable(decided_by));
    return;
  }
  if (slots == 0) throw UsageError(source + " has no slots: add a line as localhost slots=4, or write -n 4");
  job.processes = slots;
  decided_by = source;
  fmt::print(stderr, "wherry mpirun: {} names this machine only: {} processes, the sum of its slots\n",
             printable(source), slots);
}

/// Sets the number of processes: -n, else the slots of --host, else those of --hostfile. All hosts must be this machine
/// in any case.
void count_processes(CommandLine& line) {
  std::string decided_by = line.job.processes != 0 ? "-n" : "";
  if (!line.hosts.empty()) take_slots(line.job, hosts_of_list(line.hosts), "--host " + line.hosts, decided_by);
  if (!line.hostfile.empty()) {
    take_slots(line.job, read_hostfile(line.hostfile), "--hostfile " + line.hostfile, decided_by);
  }
  if (line.job.processes == 0)
    throw UsageError("write the number of processes to start, as in wherry mpirun -n 2 ./app");
}

/// Checks the settings. The command line takes precedence over the environment.
void check_settings(CommandLine& line) {
  if (line.budget->count() > 0) {
    check_budget(line.job.budget);
  } else {
    config::check(config::Key::mpi_budget);
  }
  if (line.layout->count() == 0 && config::is_set(config::Key::mpi_layout)) {
    line.job.layout = config::word(config::Key::mpi_layout);
  }
  check_variables();
}

int run(CommandLine line) {
  MpiJob& job = line.job;
  try {
    count_processes(line);
    check_settings(line);
    take_launcher_options(job);
    const auto program = find_program(job.program.front());
    if (const int error = obstacle(program)) return cannot_run(job.program.front(), error);
    const LauncherCommand command = plan(job, program);
    if (!line.only_print) return execute(command);
    fmt::print("{}", command.text());
    return 0;
  } catch (const UsageError& error) {
    fmt::print(stderr, "wherry mpirun: {}\n", printable(error.what()));
    return UsageError::kStatus;
  } catch (const Error& error) {
    fmt::print(stderr, "wherry mpirun: {}\n", printable(error.what()));
    return kStartFailed;
  }
}

}  // namespace

Action add_mpirun(CLI::App& command) {
  auto line = std::make_shared<CommandLine>();
  MpiJob* const job = &line->job;
  command.add_option("-n,--np", job->processes, "The number of processes to start; -np is the same")
      ->check(CLI::Range(1, 65536));
  command.add_option("-f,--hostfile,--machinefile", line->hostfile,
                     "A hostfile of Open MPI or MPICH; it may name only this machine. Without -n the sum of its slots "
                     "is the number of processes; a line without slots counts 1");
  command.add_option("-H,--host,--hosts", line->hosts, "The same as a list, such as localhost:4");
  line->layout = command
                     .add_option("--layout", job->layout,
                                 "How a process divides its receive buffer among the senders: topology, by the "
                                 "neighbours declared with MPI_Cart_create and similar calls; adaptive, by observed "
                                 "traffic; equal. The default is WHERRY_MPI_LAYOUT, if set")
                     ->check(CLI::IsMember({"topology", "adaptive", "equal"}))
                     ->capture_default_str();
  line->budget = command.add_option("--budget", job->budget, "The size of each process's receive buffer, such as 384K");
  command.add_option("--mpi", job->mpi,
                     "The MPI of a program that is not linked with one, such as a script: mpich, openmpi or the path "
                     "of its launcher (default: the first mpiexec in PATH)");
  command.add_flag("--print", line->only_print, "Print the variables and the command, and run nothing");
  command
      .add_option("PROGRAM", job->program,
                  "The program and its arguments; write options for the MPI's launcher before it, between -- and --")
      ->required();
  command.positionals_at_end();
  command.footer(
      "Exit status: the launcher's own; 2 if the command line is wrong; 125 if an option is invalid or a part is "
      "missing; 126\n"
      "if the program cannot be executed; 127 if it is not found.");
  return [line] { return run(*line); };
}

}  // namespace wherry::tools
