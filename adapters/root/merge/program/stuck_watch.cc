// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/stuck_watch.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <utility>

namespace wherry::merge {

namespace {

bool is_stuck(const State& state, std::chrono::seconds longest) {
  const auto begin = (BusyThread::Clock::now() - longest).time_since_epoch().count();
  return std::any_of(state.busy.begin(), state.busy.end(), [begin](const BusyThread& entry) {
    const BusyThread::Clock::rep since = entry.since;
    return since != 0 && since < begin;
  });
}

}  // namespace

StuckWatch::StuckWatch(const State& state, std::chrono::seconds longest,
                       std::function<void(const std::string&)> message)
    : thread_([&state, longest, message = std::move(message)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        while (!stopped.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
          if (!is_stuck(state, longest)) continue;
          message("merging a file takes longer than " + std::to_string(longest.count()) + " seconds (--file-time)");
          std::abort();
        }
      }) {}

}  // namespace wherry::merge
