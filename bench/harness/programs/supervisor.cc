// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

const fs::path kShared = "/dev/shm";

[[noreturn]] void become(const Launch& launch, const sigset_t& before) {
  ::dup2(launch.input, STDIN_FILENO);
  ::dup2(launch.output, STDOUT_FILENO);
  ::dup2(launch.errors, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::setenv("TMPDIR", (kShared / launch.name).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : launch.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::dprintf(STDERR_FILENO, "%s: %s\n", arguments[0], std::strerror(errno));
  std::_Exit(127);
}

/// Orphans of the program become children of the supervisor (it is their subreaper), so that in the end it finds them
/// all.
void kill_children() {
  while (true) {
    std::ifstream children("/proc/thread-self/children");
    for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

/// Waits for the program, or for the word to end it; its exit status.
int watch(pid_t program, const sigset_t& signals) {
  while (true) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    if (signal != SIGCHLD) return 128 + signal;
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == program) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

void remove_traces(const std::string& name) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kShared, ignored)) {
    if (entry.path().filename().string().starts_with(name)) fs::remove_all(entry.path(), ignored);
  }
}

[[noreturn]] void supervisor(const Launch& launch, pid_t parent, const sigset_t& signals, const sigset_t& before) {
  ::setpgid(0, 0);  // A terminal's ^C ends `wherry bench`, and its end reaches the supervisor.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::getppid() != parent) std::_Exit(1);
  ::mkdir((kShared / launch.name).c_str(), 0700);
  const pid_t program = ::fork();
  if (program == 0) become(launch, before);
  // The pipes' ends belong to the program and the caller: with its own copies the supervisor would hide that one has
  // gone.
  ::close_range(0, ~0U, 0);
  const int status = program < 0 ? 126 : watch(program, signals);
  kill_children();
  remove_traces(launch.name);
  std::_Exit(status);
}

}  // namespace

pid_t start_supervisor(const Launch& launch) {
  // Blocked before the fork, so that no word to end comes too early to be heard.
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  const int error = errno;
  if (pid == 0) supervisor(launch, parent, signals, before);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw std::system_error(error, std::system_category(), "fork");
  return pid;
}

}  // namespace wherry::bench
