// SPDX-License-Identifier: Apache-2.0
// Receive coalescing: the receiver of a dense flow of small messages pauses before each look, so that several arrive
// together.
//
// May include: arch.
//
// Each look at the tail takes its cache line from the sender, which must fetch it back to publish the next message. A
// receiver that is faster than its sender and looks at once does that for every message, and both become slow. Measured
// with 64-byte messages: 7 million a second, and 25 million if the receiver waits a microsecond before each look and so
// finds dozens. A request and its reply must not lose that microsecond. So the pause begins only after many looks in a
// row have found something almost at once, sooner than a reply can come. It ends, for ever longer periods, unless it
// gathers several times as much as a look without it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "arch/pause.hpp"

namespace wherry::stream {

class ReceiveCoalescing {
 public:
  /// Call it before a call that may block looks at an empty ring.
  void before_look() const {
    if (!pausing_) return;
    const auto end = std::chrono::steady_clock::now() + kPause;
    do {
      for (int i = 0; i < kStepsPerClock; ++i) arch::pause();
    } while (std::chrono::steady_clock::now() < end);
  }

  /// Records what that look found, or later ones that succeeded almost at once; 0 if none did.
  void found(std::size_t bytes) {
    if (pausing_) {
      judge(bytes);
    } else if (bytes == 0 || bytes >= kPlenty) {
      in_a_row_ = 0;
      gathered_ = 0;
    } else {
      gathered_ += bytes;
      if (++in_a_row_ >= quick_looks_) begin();
    }
  }

  [[nodiscard]] bool pausing() const { return pausing_; }

 private:
  void begin() {
    worth_it_ = kWorth * gathered_ / in_a_row_;
    in_a_row_ = 0;
    gathered_ = 0;
    useless_pauses_ = 0;
    pausing_ = true;
  }
  void judge(std::size_t bytes) {
    if (bytes >= worth_it_) {
      useless_pauses_ = 0;
      quick_looks_ = kFirstQuickLooks;
    } else if (++useless_pauses_ >= kUselessPausesToEnd) {
      pausing_ = false;
      quick_looks_ = std::min(quick_looks_ * 2, kMostQuickLooks);
    }
  }

  static constexpr std::chrono::nanoseconds kPause{1000};
  static constexpr int kStepsPerClock = 4;
  static constexpr std::size_t kPlenty = std::size_t{16}
                                         << 10;  ///< a look that finds this many bytes is cheap without a pause
  static constexpr std::uint32_t kFirstQuickLooks = 32;
  static constexpr std::uint32_t kMostQuickLooks = 65536;
  static constexpr std::uint32_t kUselessPausesToEnd = 2;
  static constexpr std::size_t kWorth = 3;

  bool pausing_ = false;
  std::uint32_t quick_looks_ = kFirstQuickLooks;
  std::uint32_t in_a_row_ = 0;  ///< consecutive looks that found something almost at once
  std::uint32_t useless_pauses_ = 0;
  std::size_t gathered_ = 0;  ///< bytes found by those looks
  std::size_t worth_it_ = 0;  ///< bytes that a look after a pause must find
};

}  // namespace wherry::stream
