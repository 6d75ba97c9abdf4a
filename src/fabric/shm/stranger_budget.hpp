// SPDX-License-Identifier: Apache-2.0
// How many connectors of other users a listener lets into the kernel's queue. The queue is served in order, so an owner
// waits behind every stranger in it. A storm of strangers keeps a queue of 4096 full, and connecting took 0.3 s. Beyond
// the budget the queue is short: strangers are refused by the kernel, and an owner finds a place by trying again.
//
// Not thread-safe; never blocks.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace wherry::fabric::shm {

class StrangerBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// All other users together: as many at once, and in the long run one in each kPerStranger.
  static constexpr int kAtOnce = 256;
  static constexpr Clock::duration kPerStranger = std::chrono::milliseconds(1);
  /// The queue while the budget is spent. With 16 an owner often found no place; with 64 it waited longer.
  static constexpr int kShortQueue = 32;

  explicit StrangerBudget(Clock::time_point now) : refilled_(now) {}

  /// A connector of another user was dropped.
  void spend(Clock::time_point now) {
    refill(now);
    left_ = std::max(0, left_ - 1);
    spent_ |= left_ == 0;
  }
  /// The length that the kernel's queue should have now: short from when the budget is spent until all of it is back.
  [[nodiscard]] int queue_length(Clock::time_point now) {
    refill(now);
    if (left_ == kAtOnce) spent_ = false;
    return spent_ ? kShortQueue : SOMAXCONN;
  }

 private:
  void refill(Clock::time_point now) {
    const auto more = (now - refilled_) / kPerStranger;
    left_ = static_cast<int>(std::min<Clock::rep>(left_ + more, kAtOnce));
    refilled_ += more * kPerStranger;
  }

  int left_ = kAtOnce;
  Clock::time_point refilled_;
  bool spent_ = false;
};

}  // namespace wherry::fabric::shm
