// SPDX-License-Identifier: Apache-2.0
// An endpoint's descriptor, the socket, as those see it who wait on it: sleeping, being woken by a close in another
// thread, and the news that the peer is gone.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"

namespace wherry::scif {

/// Wakes the threads that sleep in calls on an endpoint which another thread closes.
class Sleepers {
 public:
  /// While it exists, the calling thread's bell is rung by wake().
  class Here {
   public:
    explicit Here(Sleepers& all);
    Here(Here&& other) noexcept : all_(std::exchange(other.all_, nullptr)), bell_(other.bell_) {}
    Here& operator=(Here&&) = delete;
    ~Here();
    /// Readable once wake() was called.
    [[nodiscard]] int descriptor() const { return bell_; }

   private:
    Sleepers* all_;
    int bell_;
  };

  void wake();
  [[nodiscard]] bool woken() const { return woken_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::vector<int> bells_;
  std::atomic<bool> woken_{false};
};

class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}

  [[nodiscard]] int descriptor() const { return fd_; }
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }

  /// Sleeps until one of `events` or a hang-up shows on the descriptor. Returns 0, or EINTR after a signal, ECANCELED
  /// when the endpoint is being closed, ETIMEDOUT, or what a descriptor that is gone gives. Learns of hang-ups.
  int sleep(short events, fabric::Deadline deadline);

  /// Whether the peer closed or died, as far as is known. What it sent before is visible then.
  [[nodiscard]] bool gone() const { return gone_.load(std::memory_order_acquire); }
  /// The same, asking the kernel unless that was done a moment ago: calls that spin on it would feel it.
  bool look_for_end() { return gone() || (!asked_lately() && ask_for_end()); }
  /// Whether the kernel was asked a moment ago.
  [[nodiscard]] bool asked_lately() const;
  /// The same, asking the kernel now.
  bool ask_for_end();
  void declare_gone() { gone_.store(true, std::memory_order_release); }

 private:
  static constexpr std::int64_t kMomentNs = 10'000;

  const int fd_;
  Sleepers sleepers_;
  std::atomic<bool> gone_{false};
  std::atomic<std::int64_t> asked_ns_{0};
};

}  // namespace wherry::scif
