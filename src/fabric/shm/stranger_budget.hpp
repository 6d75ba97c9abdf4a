// SPDX-License-Identifier: Apache-2.0
// Limits the connectors of other users (strangers) in a listener's kernel queue. The queue is served in order, so a
// connector of this user (owner) waits behind all strangers in it. With a storm of strangers, which kept a queue of
// 4096 full, connecting took 0.3 s. When the budget is spent the queue is made short. The kernel then refuses most
// strangers, and an owner finds a place by trying again.
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

  /// Strangers of all other users together: kAtOnce at once, and one per kPerStranger in the long run.
  static constexpr int kAtOnce = 256;
  static constexpr Clock::duration kPerStranger = std::chrono::milliseconds(1);
  /// Length of the queue while the budget is spent. With 16 an owner often found no place; with 64 it waited longer.
  static constexpr int kShortQueue = 32;

  explicit StrangerBudget(Clock::time_point now) : refilled_(now) {}

  /// Counts a connector of another user that was dropped.
  void spend(Clock::time_point now) {
    refill(now);
    left_ = std::max(0, left_ - 1);
    spent_ |= left_ == 0;
  }
  /// Returns the length that the kernel's queue should have now. It is short from when the budget is spent until it is
  /// full again.
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
