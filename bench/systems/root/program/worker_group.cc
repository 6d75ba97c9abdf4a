// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/worker_group.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace wherry::bench::root {
namespace {

std::string describe(int status) {
  if (WIFEXITED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

int run(const std::string& name, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    std::fflush(stderr);
    return 1;
  }
}

}  // namespace

WorkerGroup::~WorkerGroup() {
  for (const Member& member : members_) {
    if (member.pid > 0) ::kill(member.pid, SIGKILL);
  }
  for (const Member& member : members_) {
    while (member.pid > 0 && ::waitpid(member.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

pid_t WorkerGroup::start(std::string name, const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);  // What ROOT prints is no answer.
    std::_Exit(run(name, body));           // The parent's objects are not this process's to destroy.
  }
  members_.push_back({std::move(name), pid});
  return pid;
}

bool WorkerGroup::ended(Member& member) {
  if (member.pid < 0) return true;
  int status = 0;
  const pid_t found = ::waitpid(member.pid, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  member.pid = -1;
  if (status != 0) throw std::runtime_error(fmt::format("{}: {}", member.name, describe(status)));
  return true;
}

void WorkerGroup::wait_until(const std::function<bool()>& met) {
  while (!met()) {
    for (Member& member : members_) {
      if (ended(member)) throw std::runtime_error(member.name + ": has ended too early");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

void WorkerGroup::wait() {
  const auto all_ended = [this] { return std::all_of(members_.begin(), members_.end(), ended); };
  while (!all_ended()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

}  // namespace wherry::bench::root
