// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/missing_workers.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace wherry::merge {

namespace {

bool has_ended(const UniqueFd& process) {
  pollfd one{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

MissingWorkers::MissingWorkers(State& state) : state_(state) {
  state.missing.take(state.connected);
  for (const WorkerEntry& worker : state.missing) {
    Missing& missing = missing_.emplace_back(Missing{.worker = worker});
    if (!worker.returns || worker.process == 0) continue;
    missing.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, worker.process, 0)));
    missing.dead = !missing.process.valid() && errno == ESRCH;
  }
}

std::size_t MissingWorkers::give_up() {
  std::size_t count = 0;
  std::erase_if(missing_, [&](const Missing& missing) {
    const std::string_view name = name_of(missing.worker);
    if (!state_.missing.contains(name)) return true;  // the worker has come back
    if (!is_hopeless(missing)) return false;
    state_.missing.erase(name);
    state_.lose(missing.worker);
    ++count;
    return true;
  });
  return count;
}

std::set<pid_t> MissingWorkers::processes() const {
  std::set<pid_t> processes;
  for (const Missing& missing : missing_) {
    if (missing.worker.process != 0) processes.insert(missing.worker.process);
  }
  return processes;
}

bool MissingWorkers::is_hopeless(const Missing& missing) const {
  if (!missing.worker.returns || missing.dead) return true;
  return missing.process.valid() ? has_ended(missing.process) : is_late();
}

}  // namespace wherry::merge
