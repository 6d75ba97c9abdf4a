// SPDX-License-Identifier: Apache-2.0
#include "window/completion_counters.hpp"

namespace wherry::window {

std::uint64_t CompletionCounters::start() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  progress_.wait(lock, [this] { return started_ - completed_ < kMostOpen; });
  --waiting_;
  peers_.store_started(started_ + 1);  // WINDOW-RMA
  return started_++;
}

void CompletionCounters::finish(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  done_.set(call % kMostOpen);
  if (call != completed_) return;
  for (; done_.test(completed_ % kMostOpen); ++completed_) done_.reset(completed_ % kMostOpen);
  peers_.store_completed(completed_);  // WINDOW-RMA
  if (waiting_ != 0) progress_.notify_all();
}

std::uint64_t CompletionCounters::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

bool CompletionCounters::wait(std::uint64_t calls, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const bool complete = progress_.wait_until(lock, deadline, [&] { return completed_ >= calls; });
  --waiting_;
  return complete;
}

}  // namespace wherry::window
