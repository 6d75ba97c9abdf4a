// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/process_group.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace wherry::bench {
namespace {

// glibc has had a wrapper only since 2.36.
int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

std::string describe(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return info.si_status == 0 ? "" : fmt::format("exit status {}", info.si_status);
  return fmt::format("ended by signal {} ({})", info.si_status, ::strsignal(info.si_status));
}

}  // namespace

ProcessGroup::~ProcessGroup() { kill_all(); }

void ProcessGroup::start(std::string name, const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid == 0) {
    ::setpgid(0, group_);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);
    std::_Exit(body());  // No destructors of the parent's objects, no second flush of its output.
  }
  if (group_ == 0) group_ = pid;
  ::setpgid(pid, group_);  // In parent and child: either may run first.
  members_.push_back({std::move(name), pid, open_process(pid)});
  if (members_.back().descriptor < 0) throw std::system_error(errno, std::system_category(), "pidfd_open");
}

std::string ProcessGroup::wait(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::vector<pollfd> alive;
  for (const Member& member : members_) alive.push_back({member.descriptor, POLLIN, 0});
  std::string failure;
  std::size_t left = alive.size();
  while (left > 0 && failure.empty()) {
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (time <= 0) failure = fmt::format("not done after {} s", timeout.count() / 1000);
    if (time <= 0 || ::poll(alive.data(), alive.size(), static_cast<int>(time)) <= 0) continue;
    for (std::size_t i = 0; i < alive.size(); ++i) {
      if ((alive[i].revents & POLLIN) == 0) continue;
      alive[i].fd = -1;
      --left;
      if (std::string how = ended(members_[i]); failure.empty()) failure = std::move(how);
    }
  }
  kill_all();
  return failure;
}

// Does not reap: as long as the first process is there, the group's number is not given again.
std::string ProcessGroup::ended(Member& member) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(member.pid), &info, WEXITED | WNOWAIT) != 0) return member.name + ": lost";
  const std::string how = describe(info);
  return how.empty() ? how : member.name + ": " + how;
}

void ProcessGroup::kill_all() {
  if (group_ > 0) ::killpg(group_, SIGKILL);
  for (Member& member : members_) {
    while (::waitpid(member.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    if (member.descriptor >= 0) ::close(member.descriptor);
  }
  members_.clear();
  group_ = 0;
}

}  // namespace wherry::bench
