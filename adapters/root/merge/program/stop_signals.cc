// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/stop_signals.hpp"

#include <csignal>

namespace wherry::merge {

namespace {

std::atomic<bool>* stopped = nullptr;
static_assert(std::atomic<bool>::is_always_lock_free);  // otherwise a signal handler must not set it

void note(int /*signal*/) { *stopped = true; }

}  // namespace

void stop_on_signals(State& state) {
  stopped = &state.stopped;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

}  // namespace wherry::merge
