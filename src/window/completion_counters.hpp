// SPDX-License-Identifier: Apache-2.0
// Counts the RMA calls of one side: how many have started, and how many, without a gap from the first, are complete.
// Calls of several threads end in any order.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <bitset>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "window/peers_page.hpp"

namespace wherry::window {

class CompletionCounters {
 public:
  /// Most calls in flight; one more waits for the oldest.
  static constexpr std::size_t kMostOpen = 1024;

  explicit CompletionCounters(PeersPage& peers) : peers_(peers) {}

  /// Starts a call, and returns its number. The peer's word is stored before this returns. Blocks while kMostOpen calls
  /// are open.
  std::uint64_t start();
  /// Marks a call as complete. The peer sees the new count after the call's bytes.
  void finish(std::uint64_t call);
  [[nodiscard]] std::uint64_t started() const;
  /// Waits until the first `calls` are complete. False: the deadline passed.
  bool wait(std::uint64_t calls, std::chrono::steady_clock::time_point deadline);

 private:
  PeersPage& peers_;
  mutable std::mutex mutex_;
  std::condition_variable progress_;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  std::size_t waiting_ = 0;
  std::bitset<kMostOpen> done_;  ///< [number % kMostOpen] of complete calls not yet counted in completed_
};

}  // namespace wherry::window
