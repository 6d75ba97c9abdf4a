// SPDX-License-Identifier: Apache-2.0
// What guards an endpoint. The locks outlive it, as entries are used again and never destroyed. Holding one of them
// keeps the endpoint from being taken out of the table, so a message that need not wait costs one locked instruction
// (17 ns here, where a cache line from the other core takes 130) and not the six of a lookup, a use count and a mutex.
#pragma once

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <new>
#include <vector>

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

/// An endpoint's place in the table, under all of its descriptors. A line for each rate of use.
struct EndpointEntry {
  alignas(64) BriefLock table;   ///< guards how many use the endpoint
  Endpoint* endpoint = nullptr;  ///< written under all three locks, so read under any of them
  alignas(64) BriefLock sending;
  alignas(64) BriefLock receiving;
  std::vector<int> descriptors;  ///< that are known to be the endpoint's; the table's
};

/// The entry of the endpoint that a descriptor is known to be of. Null: none. Programs close descriptors
/// behind the library's back, and numbers are used again: ask once more after locking something of the entry.
EndpointEntry* entry_of(int fd);
/// For a new endpoint.
EndpointEntry& take_entry();
void give_back(EndpointEntry& entry) noexcept;
/// The endpoint's socket is another one now. See EndpointWaiter::become.
void socket_changed(EndpointEntry& entry, std::uint64_t before, std::uint64_t now);

/// A blocking caller has the turn from its first byte to its last, also while it waits and holds no lock. All of it is
/// guarded by one BriefLock, and costs nothing more than that lock while the turn is free.
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
  /// In a forked child, which has no other thread: the turn is free. The condition variable is left as it was, as its
  /// destructor would wait for the parent's threads.
  void forget_parents() { new (this) Turn; }

 private:
  bool taken_ = false;
  int waiting_ = 0;
  std::condition_variable_any free_;
};

}  // namespace wherry::scif
