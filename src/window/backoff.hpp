// SPDX-License-Identifier: Apache-2.0
// Waits without a bell for a word of the peer that comes soon or never.
//
// May include: base, arch.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "arch/pause.hpp"

namespace wherry::window {

using Clock = std::chrono::steady_clock;

/// Exponential backoff: 1000 spins, then sleeps of 10 us to 1 ms. The peer's pending work is a copy, mostly done in a
/// moment.
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
