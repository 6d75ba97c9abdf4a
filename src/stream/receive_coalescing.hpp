// SPDX-License-Identifier: Apache-2.0
// Receive coalescing: how soon the receiver of a dense flow of small messages looks again. May include: arch.
//
// Each look at the tail takes its cache line away from the sender, which must fetch it back to publish the next
// message. A receiver that is faster than its sender and looks at once does that for every message, and then both are
// slow: 64-byte messages went at 7 million a second, and at 25 million when the receiver let a microsecond pass before
// each look and so found dozens. A request and its answer must not lose that microsecond. So the pause begins only
// after many looks in a row have found something almost at once, sooner than an answer can come; and it ends, for ever
// longer periods, unless it gathers several times what a look without it finds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "arch/pause.hpp"

namespace wherry::stream {

class ReceiveCoalescing {
 public:
  /// Before a look at an empty ring by a call that may block.
  void before_look() const {
    if (!pausing_) return;
    const auto end = std::chrono::steady_clock::now() + kPause;
    do {
      for (int i = 0; i < kStepsPerClock; ++i) arch::pause();
    } while (std::chrono::steady_clock::now() < end);
  }

  /// What that look found, or those that followed it almost at once.
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
    vain_ = 0;
    pausing_ = true;
  }
  void judge(std::size_t bytes) {
    if (bytes >= worth_it_) {
      vain_ = 0;
      quick_looks_ = kFirstQuickLooks;
    } else if (++vain_ >= kMostInVain) {
      pausing_ = false;
      quick_looks_ = std::min(quick_looks_ * 2, kMostQuickLooks);
    }
  }

  static constexpr std::chrono::nanoseconds kPause{1000};
  static constexpr int kStepsPerClock = 4;
  static constexpr std::size_t kPlenty = std::size_t{16} << 10;  ///< a look that finds this much is cheap already
  static constexpr std::uint32_t kFirstQuickLooks = 32;
  static constexpr std::uint32_t kMostQuickLooks = 65536;
  static constexpr std::uint32_t kMostInVain = 2;
  static constexpr std::size_t kWorth = 3;

  bool pausing_ = false;
  std::uint32_t quick_looks_ = kFirstQuickLooks;
  std::uint32_t in_a_row_ = 0;  ///< looks that found something so soon
  std::uint32_t vain_ = 0;
  std::size_t gathered_ = 0;  ///< by those looks
  std::size_t worth_it_ = 0;  ///< what a look after a pause must find
};

}  // namespace wherry::stream
