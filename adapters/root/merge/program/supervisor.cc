// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/supervisor.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/root/merge/program/stop_signals.hpp"

namespace wherry::merge {

namespace {

// The supervisor gives up after this many deaths without a file merged or a shard joined between them.
constexpr std::uint64_t kMostVainRestarts = 20;

pid_t start(const std::function<int()>& serve) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (child > 0) return child;
  // If the supervisor dies, the child merges what was handed over and ends.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  const int status = serve();
  std::fflush(nullptr);
  ::_exit(status);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::system_category(), "waitpid");
  }
  return status;
}

/// Whether a file can have caused the signal. Other signals come from outside.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL || signal == SIGFPE;
}

/// Bans the workers whose files were being read or merged at a crash. The first crash bans none, because one file may
/// corrupt memory and another one then crash. It only sets `careful`: from then on files are tried before they are
/// merged. So a worker is banned if its file passed the trial and still crashed the process.
void blame(State& state) {
  if (!std::exchange(state.careful, true)) return;
  for (const BusyThread& busy : state.busy) {
    if (busy.since == 0) continue;
    const WorkerEntry banned{.name = busy.worker};
    const std::string_view culprit = name_of(banned);
    if (state.banned.contains(culprit)) continue;
    state.banned.insert(banned);
    auto present = state.connected.erase(culprit);
    if (!present) present = state.missing.erase(culprit);
    ++state.refused;
    if (present) state.lose(*present);  // a worker that has already left was counted then
    std::fprintf(stderr, "wherry-merge: a file of worker %.*s crashed it; the worker is dropped\n",
                 static_cast<int>(culprit.size()), culprit.data());
  }
}

/// Whether to start another child after a death.
bool may_go_on(State& state, int signal) {
  std::fprintf(stderr, "wherry-merge: the merging process died: %s\n", ::strsignal(signal));
  if (is_crash(signal)) blame(state);
  for (BusyThread& busy : state.busy) busy.since = 0;
  const std::uint64_t progress = state.files + state.joined;
  state.vain_restarts = progress == state.progress_before ? state.vain_restarts + 1 : 0;
  state.progress_before = progress;
  ++state.restarts;
  return state.vain_restarts < kMostVainRestarts;
}

}  // namespace

State& make_shared_state() {
  void* memory = ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  return *new (memory) State;
}

int supervise(State& state, const std::function<int()>& serve) {
  stop_on_signals(state);
  for (;;) {
    const int status = wait_for(start(serve));
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (!may_go_on(state, WTERMSIG(status))) return 1;
  }
}

}  // namespace wherry::merge
