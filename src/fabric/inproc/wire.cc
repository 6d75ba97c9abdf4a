// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/wire.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace wherry::fabric::inproc {

// Never destroyed: connections in static objects may outlive main().
Wire& Wire::of_puts() {
  static Wire& wire = *new Wire;
  return wire;
}

Wire& Wire::of_networks() {
  static Wire& wire = *new Wire;
  return wire;
}

Wire::Wire() {
  std::thread([this] { carry(); }).detach();
}

void Wire::take(std::shared_ptr<Carried> carried) {
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(carried));
  }
  news_.notify_one();
}

void Wire::carry() {
  for (;;) {
    const auto now = Carried::Clock::now();
    auto next = Carried::Clock::time_point::max();
    std::erase_if(busy_, [&next, now](Busy& busy) {
      const auto more = busy.next > now ? std::optional(busy.next) : busy.carried->run();
      if (more) next = std::min(next, busy.next = *more);
      return !more;
    });
    wait_for_news(next);
  }
}

void Wire::wait_for_news(Carried::Clock::time_point next) {
  std::unique_lock lock(mutex_);
  const auto come = [this] { return !incoming_.empty(); };
  if (next == Carried::Clock::time_point::max()) {
    news_.wait(lock, come);
  } else {
    news_.wait_until(lock, next, come);
  }
  for (auto& carried : incoming_) {
    const auto known = std::ranges::find(busy_, carried, &Busy::carried);
    if (known != busy_.end()) {
      known->next = {};
    } else {
      busy_.push_back({std::move(carried), {}});
    }
  }
  incoming_.clear();
}

}  // namespace wherry::fabric::inproc
