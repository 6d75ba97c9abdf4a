// SPDX-License-Identifier: Apache-2.0
// What guards an endpoint. The locks belong to the descriptor's number and outlive every endpoint that has it: who
// holds one of them keeps the endpoint from being taken out of the table, so a message that need not wait costs one
// locked instruction (17 ns here, where a cache line from the other core takes 130) and not the six of a lookup, a use
// count and a mutex.
#pragma once

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "arch/pause.hpp"

namespace wherry::scif {

/// Held for as long as a copy of a queue takes, seldom for a system call.
class BriefLock {
 public:
  void lock() {
    for (int looks = 0; held_.test_and_set(std::memory_order_acquire); ++looks) {  // BRIEF-LOCK
      if (looks < kLooks) {
        arch::pause();
        continue;
      }
      // Its holder does not run, or is in the kernel.
      timespec a_while{.tv_sec = 0, .tv_nsec = 20'000};
      ::nanosleep(&a_while, nullptr);
    }
  }
  void unlock() { held_.clear(std::memory_order_release); }  // BRIEF-LOCK

 private:
  static constexpr int kLooks = 64;
  std::atomic_flag held_;
};

class Endpoint;

/// The place of a descriptor's number in the table; never destroyed. A line for each rate of use.
struct Slot {
  alignas(64) BriefLock table;   ///< guards how many use the endpoint
  Endpoint* endpoint = nullptr;  ///< written by who holds all three locks, so read by who holds one
  alignas(64) BriefLock sending;
  alignas(64) BriefLock receiving;
};

/// Null: no endpoint ever had that number or one near it.
Slot* slot_of(int descriptor);
/// Makes it. Throws Error(EMFILE) if the table does not go so far.
Slot& make_slot(int descriptor);

/// A blocking caller has the turn from its first byte to its last, also while it waits and holds no lock. All of it is
/// guarded by one BriefLock, and costs nothing more than that lock if nobody else has the turn.
class Turn {
 public:
  class Mine {
   public:
    /// @param lock  held; and again when this ends
    Mine(Turn& turn, std::unique_lock<BriefLock>& lock) : turn_(turn), lock_(lock) {
      ++turn_.waiting_;
      while (turn_.taken_) turn_.free_.wait(lock_);
      --turn_.waiting_;
      turn_.taken_ = true;
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;
    ~Mine() {
      if (!lock_.owns_lock()) lock_.lock();
      turn_.taken_ = false;
      if (turn_.waiting_ != 0) turn_.free_.notify_one();
    }

   private:
    Turn& turn_;
    std::unique_lock<BriefLock>& lock_;
  };

  [[nodiscard]] bool taken() const { return taken_; }

 private:
  bool taken_ = false;
  int waiting_ = 0;
  std::condition_variable_any free_;
};

}  // namespace wherry::scif
