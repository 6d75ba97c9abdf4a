// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/wire.hpp"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

namespace wherry::fabric::inproc {

// Never destroyed: connections in static objects may outlive main().
Wire& Wire::instance() {
  static Wire& wire = *new Wire;
  return wire;
}

Wire::Wire() {
  std::thread([this] { carry(); }).detach();
}

void Wire::take(std::shared_ptr<PutQueue> queue) {
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(queue));
  }
  news_.notify_one();
}

void Wire::carry() {
  for (;;) {
    auto next = PutQueue::Clock::time_point::max();
    std::erase_if(busy_, [&next](const std::shared_ptr<PutQueue>& queue) {
      const auto more = queue->run();
      if (more) next = std::min(next, *more);
      return !more;
    });
    wait_for_news(next);
  }
}

void Wire::wait_for_news(PutQueue::Clock::time_point next) {
  std::unique_lock lock(mutex_);
  const auto come = [this] { return !incoming_.empty(); };
  if (next == PutQueue::Clock::time_point::max()) {
    news_.wait(lock, come);
  } else {
    news_.wait_until(lock, next, come);
  }
  std::move(incoming_.begin(), incoming_.end(), std::back_inserter(busy_));
  incoming_.clear();
}

}  // namespace wherry::fabric::inproc
