// SPDX-License-Identifier: Apache-2.0
// Waits on an endpoint's socket: sleeps, wakes up if another thread closes the endpoint, and detects the peer's end.
// The socket may have several descriptors (dup). Each call uses only the one that it was given, which the program has
// open.
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
  /// While it exists, wake() rings the calling thread's bell.
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
  /// To be called in a forked child, which has no other thread. A lock that is held, and a list that is being changed,
  /// are replaced without being destroyed.
  void forget_parents();

 private:
  std::mutex mutex_;
  std::vector<int> bells_;
  std::atomic<bool> woken_{false};
};

/// Polls `ready()` for as long as the spin budget allows. The first polls do not read the clock, which takes 50 ns: a
/// peer that answers at once is noticed before that.
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
  /// @param socket  inode_of() of its descriptors
  explicit EndpointWaiter(std::uint64_t socket) : socket_(socket) {}

  [[nodiscard]] std::uint64_t socket() const { return socket_.load(std::memory_order_relaxed); }
  /// Notes that another socket has replaced this one under the same descriptors.
  void become(std::uint64_t socket) { socket_.store(socket, std::memory_order_relaxed); }
  /// Whether `fd` is a descriptor of the socket: the program may have closed it with close(2). Asks the kernel.
  [[nodiscard]] bool is(int fd) const;
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }

  /// Sleeps until one of `events` or a hang-up occurs on the descriptor. Returns 0, EINTR after a signal, ECANCELED if
  /// the endpoint is being closed, ETIMEDOUT, or EBADF if `fd` is not the socket. Records hang-ups.
  int sleep(int fd, short events, fabric::Deadline deadline);

  /// Whether the peer is known to have closed or died. If so, everything that it sent before is visible.
  [[nodiscard]] bool gone() const { return gone_.load(std::memory_order_acquire); }  // SCIF-GONE
  /// The same, or whether `fd` is not the socket. Asks the kernel unless that was done within the last kMoment, because
  /// callers spin on it.
  bool look_for_end(int fd);
  /// The same, asking the kernel now.
  bool ask_for_end(int fd) { return ends_within(fd, 0); }
  /// The same, after waiting for the end for up to `timeout` milliseconds.
  bool ends_within(int fd, int timeout);
  /// For one poll(2) of several endpoints: whether `moments` times kMoment have passed since the kernel was last asked
  /// about this one. note_events() records its answer for `fd`, which may be another file's number by now.
  [[nodiscard]] bool is_due(std::size_t moments) const {
    return !gone() && arch::ticks() - asked_.load(std::memory_order_relaxed) >= moments * kMoment;
  }
  void note_events(int fd, short kernel);
  void declare_gone() { gone_.store(true, std::memory_order_release); }  // SCIF-GONE

 private:
  static constexpr std::uint64_t kMoment = 50'000;  ///< ticks: some 20 us

  std::atomic<std::uint64_t> socket_;
  Sleepers sleepers_;
  std::atomic<bool> gone_{false};
  std::atomic<std::uint64_t> asked_{0};  ///< when the kernel was last asked, in ticks
};

}  // namespace wherry::scif
