// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "file/mount/nodes.hpp"

namespace wherry::file::mount {

/// Locks that programs wait for. A separate thread retries them, so that waits do not occupy the threads that serve the
/// mount. When a lock is given up in this mount, the waits for its file are retried at once. Nothing announces other
/// locks, so the pauses grow to 50 ms, and with more than 50 waits to 1 ms for each.
///
/// States of a wait, and the function that causes each transition:
///
///   tried  -> idle      finish: EAGAIN
///   tried  -> answered  finish: a result; EAGAIN after the last attempt; or the error of an `interrupt` or `stop` that
///                       came meanwhile
///   idle   -> tried     run: its pause is over
///   idle   -> answered  interrupt: EINTR, or EAGAIN if attempts are limited; stop: EIO
///
/// Thread-safe. Only `stop` blocks.
class LockWaits {
 public:
  struct Wait {
    const void* id = nullptr;  ///< for `interrupt`; null: not interruptible
    NodeId node = 0;
    std::function<int()> attempt{};     ///< returns an errno value, EAGAIN to retry; may block as Host does
    std::function<void(int)> answer{};  ///< called once, with no lock held
    int most_attempts = 0;              ///< 0: unlimited
  };

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Wait wait{};
    int attempts = 0;
    Clock::time_point due{};
    Clock::duration pause{};
    bool tried = true;
    bool interrupted = false;
    bool must_retry = false;  ///< set by `retry_now` during the attempt
  };
  using Entries = std::list<Entry>;

 public:
  /// A wait for which all memory is allocated.
  class Prepared {
   private:
    friend class LockWaits;
    Entries entry_{};
  };

  LockWaits() = default;
  LockWaits(const LockWaits&) = delete;
  LockWaits& operator=(const LockWaits&) = delete;
  ~LockWaits() { stop(); }

  /// Starts the thread, which begins the retries. Once. Throws std::system_error.
  /// @param begin  runs first in the thread
  void start(std::function<void()> begin = [] {});
  /// Adds a wait whose first attempt returned EAGAIN.
  /// @param announce  called before the wait can be answered: from then on `interrupt` may be called
  void add(Wait wait, const std::function<void()>& announce);
  /// Adds a wait without a first attempt: the thread makes one at once. Call `prepare` before the lock is requested, so
  /// that `hand_over` cannot fail once the lock is granted.
  [[nodiscard]] static Prepared prepare(Wait wait);
  void hand_over(Prepared wait) noexcept;
  void interrupt(const void* id);
  /// Retries the waits for this file at once, because a lock on it was given up. Waits with limited attempts keep their
  /// pauses: otherwise they would use up their attempts at once.
  void retry_now(NodeId node);
  /// Answers all waits with EIO before it returns, and also those that are added later.
  void stop();

 private:
  void run();
  bool enter(Entries& made);
  void finish(Entries::iterator entry, int error);
  static int interrupt_error_of(const Entry& entry);
  static void answer(Entries entries, int error);
  Entries::iterator next();

  std::mutex mutex_;
  std::condition_variable changed_;
  Entries entries_;  ///< longest waiting first
  int adding_ = 0;   ///< calls of `add` in progress whose entry was put into `entries_`
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace wherry::file::mount
