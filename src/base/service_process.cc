// SPDX-License-Identifier: Apache-2.0
#include "base/service_process.hpp"

#include <sys/resource.h>
#include <sys/signalfd.h>

#include <csignal>

namespace wherry {

UniqueFd prepare_service_process(std::initializer_list<int> ending) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : ending) {
    // An ignored signal is left out: if blocked, the descriptor would report it although it is ignored.
    struct sigaction before{};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

}  // namespace wherry
