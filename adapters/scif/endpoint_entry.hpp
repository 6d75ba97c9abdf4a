// SPDX-License-Identifier: Apache-2.0
// The locks of an endpoint. They outlive it, because entries are reused and never destroyed. A held lock keeps the
// endpoint in the table. So a message that need not wait costs one locked instruction, not the six of a lookup, a use
// count and a mutex. Here that is 17 ns, where a cache line from the other core takes 130.
#pragma once

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <new>
#include <vector>

#include "arch/pause.hpp"

namespace wherry::scif {

/// A spinlock, held for the copy of a queue and seldom for a system call.
class SpinLock {
 public:
  void lock() {
    for (int looks = 0; held_.test_and_set(std::memory_order_acquire); ++looks) {  // SPIN-LOCK
      if (looks < kLooks) {
        arch::pause();
        continue;
      }
      // The holder does not run, or is in the kernel.
      timespec a_while{.tv_sec = 0, .tv_nsec = 20'000};
      ::nanosleep(&a_while, nullptr);
    }
  }
  void unlock() { held_.clear(std::memory_order_release); }  // SPIN-LOCK

 private:
  static constexpr int kLooks = 64;
  std::atomic_flag held_;
};

class Endpoint;

/// An endpoint's entry in the table, shared by all of its descriptors. Members that are used at different rates have
/// different cache lines.
struct EndpointEntry {
  alignas(64) SpinLock table;    ///< guards Endpoint::users
  Endpoint* endpoint = nullptr;  ///< written under all three locks, so read under any of them
  alignas(64) SpinLock sending;
  alignas(64) SpinLock receiving;
  std::vector<int> descriptors;  ///< known descriptors of the endpoint; they belong to the table
};

/// Returns the entry of the endpoint that a descriptor is known to belong to, or null. Programs close descriptors
/// without the library's knowledge, and numbers are reused: call this again after locking something of the entry.
EndpointEntry* entry_of(int fd);
/// Returns an entry for a new endpoint.
EndpointEntry& take_entry();
void give_back(EndpointEntry& entry) noexcept;
/// Notes that the endpoint has another socket now. See EndpointWaiter::become.
void socket_changed(EndpointEntry& entry, std::uint64_t before, std::uint64_t now);

/// Serializes blocking callers: one has the turn from its first byte to its last, even while it waits without the lock.
/// One SpinLock guards all of it. A free turn costs no more than that lock.
class Turn {
 public:
  class Guard {
   public:
    /// @param lock  is held, and is held again when this ends
    Guard(Turn& turn, std::unique_lock<SpinLock>& lock) : turn_(turn), lock_(lock) {
      ++turn_.waiting_;
      while (turn_.taken_) turn_.free_.wait(lock_);
      --turn_.waiting_;
      turn_.taken_ = true;
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (!lock_.owns_lock()) lock_.lock();
      turn_.taken_ = false;
      if (turn_.waiting_ != 0) turn_.free_.notify_one();
    }

   private:
    Turn& turn_;
    std::unique_lock<SpinLock>& lock_;
  };

  [[nodiscard]] bool taken() const { return taken_; }
  /// To be called in a forked child, which has no other thread: frees the turn. The condition variable is not
  /// destroyed, because its destructor would wait for the parent's threads.
  void forget_parents() { new (this) Turn; }

 private:
  bool taken_ = false;
  int waiting_ = 0;
  std::condition_variable_any free_;
};

}  // namespace wherry::scif
