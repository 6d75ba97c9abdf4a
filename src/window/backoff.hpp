// SPDX-License-Identifier: Apache-2.0
// Waiting for a word of the peer's that comes soon, or never, and without a bell. May include: base, arch.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "arch/pause.hpp"

namespace wherry::window {

using Clock = std::chrono::steady_clock;

/// Looks often at first, and ever more seldom then: what the peer has under way is a copy, mostly done in a moment.
class Backoff {
 public:
  void pause() {
    if (looks_ < kSpins) {
      ++looks_;
      arch::pause();
      return;
    }
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, kLongest);
  }

 private:
  static constexpr int kSpins = 1000;
  static constexpr std::chrono::microseconds kLongest{1000};

  int looks_ = 0;
  std::chrono::microseconds next_{10};
};

}  // namespace wherry::window
