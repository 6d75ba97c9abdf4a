// SPDX-License-Identifier: Apache-2.0
#include "mpirun/program.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <wherry/error.hpp>

#include "run/elf_file.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

/// Names of programs that start other programs, without a version: python3.11, bash.
constexpr std::array kStarters{"python", "pypy",    "ipython",  "julia",   "R",       "Rscript", "perl",
                               "ruby",   "node",    "bash",     "dash",    "sh",      "zsh",     "env",
                               "nice",   "numactl", "time",     "timeout", "taskset", "strace",  "gdb",
                               "perf",   "xterm",   "valgrind", "stdbuf",  "setarch"};

/// A process has four descriptors of the mailbox open for each process that it has connected to. MPICH's launcher
/// leaves the last process two more for each earlier process. Measured with 24 processes: 161 in MPICH's last process,
/// 120 in each of Open MPI's, 108 and 94 in the launchers.
constexpr rlim_t files_per_process(MpiFamily family) { return family == MpiFamily::mpich ? 6 : 4; }
/// Descriptors of MPI itself, 17 to 24, and of the program.
constexpr rlim_t kFilesOfEach = 64;
/// Further descriptors for the program, as far as the hard limit permits.
constexpr rlim_t kFilesToSpare = 192;

}  // namespace

std::filesystem::path interpreter_of(const std::filesystem::path& program) {
  std::ifstream file(program);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("#!")) return program;
  std::istringstream words(line.substr(2));
  std::string first;
  std::string second;
  words >> first >> second;
  if (std::filesystem::path(first).filename() == "env") first = find_program(second);
  return first.empty() ? program : std::filesystem::path(first);
}

void require_starter(const std::filesystem::path& program) {
  const auto interpreter = interpreter_of(program);
  if (interpreter != program || !ElfFile::open(program)) return;
  const std::string name = program.filename();
  const bool is_starter = std::ranges::any_of(kStarters, [&](std::string_view starter) {
    return name.starts_with(starter) && name.find_first_not_of("0123456789.", starter.size()) == std::string::npos;
  });
  if (is_starter) return;
  throw Error(ENOEXEC, "run", program.string(),
              "it is not linked with an MPI library; if it starts a program that is, name the MPI with --mpi");
}

void allow_files_for(int processes, MpiFamily family) {
  const rlim_t needed = static_cast<rlim_t>(processes) * files_per_process(family) + kFilesOfEach;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed + kFilesToSpare) return;
  if (limit.rlim_max < needed) {
    throw Error(EMFILE, "start", fmt::format("{} processes", processes),
                fmt::format("each may need {} open files and this user may have {}: start fewer, or raise the limit "
                            "(ulimit -Hn, LimitNOFILE, /etc/security/limits.conf)",
                            needed, limit.rlim_max));
  }
  limit.rlim_cur = std::min(needed + kFilesToSpare, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace wherry::tools
