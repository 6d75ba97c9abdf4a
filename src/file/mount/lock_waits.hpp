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

/// Locks that programs wait for. A thread of its own tries them again and again, so that a wait takes none of the
/// threads that serve the mount. A lock that was given up in this mount has those of its file tried at once. Of
/// other locks no message comes, so pauses grow to 50 ms, and beyond 50 waits by 1 ms for each.
///
/// States of a wait, and what leads from one to the next:
///
///   tried  -> idle      finish: EAGAIN
///   tried  -> answered  finish: a result, EAGAIN after the last attempt, or what `interrupt` or `stop`, which came
///                       meanwhile, answer
///   idle   -> tried     run: its pause is over
///   idle   -> answered  interrupt: EINTR, or EAGAIN if attempts are limited; stop: EIO
///
/// Threads: any. Nothing but `stop` blocks.
class LockWaits {
 public:
  struct Wait {
    const void* id = nullptr;  ///< for `interrupt`; null: cannot be interrupted
    NodeId node = 0;
    std::function<int()> attempt{};     ///< an errno value, EAGAIN: not yet; may block as Host does
    std::function<void(int)> answer{};  ///< called once, with no lock held
    int most_attempts = 0;              ///< 0: any number
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
    bool hurried = false;  ///< during the attempt
  };
  using Entries = std::list<Entry>;

 public:
  /// A wait that has all the memory it takes.
  class Prepared {
   private:
    friend class LockWaits;
    Entries entry_{};
  };

  LockWaits() = default;
  LockWaits(const LockWaits&) = delete;
  LockWaits& operator=(const LockWaits&) = delete;
  ~LockWaits() { stop(); }

  /// Starts the thread: waits go on from then on. Once. Throws std::system_error.
  /// @param begin  what the thread does first
  void start(std::function<void()> begin = [] {});
  /// After a first attempt that came to EAGAIN.
  /// @param announce  called before the wait can be answered: from then on `interrupt` may come
  void add(Wait wait, const std::function<void()>& announce);
  /// Without a first attempt: one is made at once, by the thread. What is prepared before a lock is asked for cannot
  /// fail to be handed over when the lock is there.
  [[nodiscard]] static Prepared prepare(Wait wait);
  void hand_over(Prepared wait) noexcept;
  void interrupt(const void* id);
  /// A lock on this file was given up. Waits of limited attempts keep their pauses: attempts would be used up at once.
  void hurry(NodeId node);
  /// Answers all with EIO before it returns, and those that are added later.
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
  Entries entries_;  ///< the longest waiting first
  int adding_ = 0;   ///< calls of `add` whose entry is in `entries_`, or was
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace wherry::file::mount
