// SPDX-License-Identifier: Apache-2.0
// Counts the RMA calls of one side: how many have started, and how many, from the first, are complete. Several threads
// have calls under way, and they end in any order. May include: base, arch, layout, fabric.
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
  /// Calls under way at most; one more waits for the oldest.
  static constexpr std::size_t kMostOpen = 1024;

  explicit CompletionCounters(PeersPage& peers) : peers_(peers) {}

  /// A call starts; the peer is told before this returns.
  std::uint64_t start();
  /// It is complete: the peer is told, after its bytes.
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
  std::bitset<kMostOpen> done_;  ///< [call's number % kMostOpen], of those that are not yet in completed_
};

}  // namespace wherry::window
