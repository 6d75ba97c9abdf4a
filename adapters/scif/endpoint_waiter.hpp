// SPDX-License-Identifier: Apache-2.0
// Waiting on an endpoint's socket: sleeping, being woken by a close in another thread, and the news that the peer is
// gone. Several descriptors may be this socket (dup); each call uses the one that it was given, which
// its program has open, and no other.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "arch/pause.hpp"
#include "arch/ticks.hpp"
#include "fabric/bell.hpp"
#include "stream/waiter.hpp"

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
  [[nodiscard]] bool woken() const { return woken_.load(std::memory_order_acquire); }  // SCIF-WOKEN
  /// In a forked child, which has no other thread: nothing sleeps. A lock that is held, and a list that is being
  /// changed, are left as they were.
  void forget_parents();

 private:
  std::mutex mutex_;
  std::vector<int> bells_;
  std::atomic<bool> woken_{false};
};

/// Looks until `ready()` as long as the budget says. The first looks are free: a peer that answers at once is met
/// before the clock, 50 ns, is asked for the first time.
template <class Ready>
bool look(stream::SpinBudget& budget, Ready&& ready, fabric::Deadline deadline = {}) {
  constexpr int kFree = 32;
  for (int i = 0; i < kFree && budget.budget().count() != 0; ++i) {
    if (ready()) return true;
    arch::pause();
  }
  return budget.look(ready, deadline);
}

class EndpointWaiter {
 public:
  /// @param socket  what inode_of() says of its descriptors
  explicit EndpointWaiter(std::uint64_t socket) : socket_(socket) {}

  [[nodiscard]] std::uint64_t socket() const { return socket_.load(std::memory_order_relaxed); }
  /// Another socket has taken the place of the one before, under the same descriptors.
  void become(std::uint64_t socket) { socket_.store(socket, std::memory_order_relaxed); }
  /// Whether `fd` is a descriptor of the socket: programs close(2) them behind the library's back. Asks the kernel.
  [[nodiscard]] bool is(int fd) const;
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }

  /// Sleeps until one of `events` or a hang-up shows on the descriptor. Returns 0, or EINTR after a signal, ECANCELED
  /// when the endpoint is being closed, ETIMEDOUT, or EBADF if `fd` is not the socket. Learns of hang-ups.
  int sleep(int fd, short events, fabric::Deadline deadline);

  /// Whether the peer closed or died, as far as is known. What it sent before is visible then.
  [[nodiscard]] bool gone() const { return gone_.load(std::memory_order_acquire); }  // SCIF-GONE
  /// The same, or whether `fd` is not the socket: asks the kernel unless that was done a moment ago, as calls that spin
  /// on it would feel it.
  bool look_for_end(int fd);
  /// The same, asking the kernel now.
  bool ask_for_end(int fd) { return ends_within(fd, 0); }
  /// The same, waiting for it so many milliseconds.
  bool ends_within(int fd, int timeout);
  /// For a poll(2) of several lines at once: whether `moments` have passed since the last look at this one, and what it
  /// said now of `fd`, which may be another file's number by now.
  [[nodiscard]] bool is_due(std::size_t moments) const {
    return !gone() && arch::ticks() - asked_.load(std::memory_order_relaxed) >= moments * kMoment;
  }
  void told(int fd, short kernel);
  void declare_gone() { gone_.store(true, std::memory_order_release); }  // SCIF-GONE

 private:
  static constexpr std::uint64_t kMoment = 50'000;  ///< ticks: some 20 us

  std::atomic<std::uint64_t> socket_;
  Sleepers sleepers_;
  std::atomic<bool> gone_{false};
  std::atomic<std::uint64_t> asked_{0};  ///< when, in ticks
};

}  // namespace wherry::scif
