// SPDX-License-Identifier: Apache-2.0
// The lock of all objects of a domain. With FI_THREAD_DOMAIN it does nothing. A thread that sleeps in a mailbox holds
// it, since a mailbox serves one thread at a time; a thread that wants the lock wakes the sleeper.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "adapters/mpi/messenger/messenger.hpp"

namespace wherry::mpi {

class DomainLock {
 public:
  explicit DomainLock(bool used) : used_(used) {}
  /// False with FI_THREAD_DOMAIN: the program makes one call at a time.
  [[nodiscard]] bool is_used() const { return used_; }

  void lock() {
    if (!used_ || mutex_.try_lock()) return;
    wanted_.fetch_add(1);
    wake_sleeper();
    mutex_.lock();
    wanted_.fetch_sub(1);
    ++served_;
  }
  void unlock() {
    if (used_) mutex_.unlock();
  }
  /// The caller holds the lock. Sleeps in the messenger's mailbox until it has something to do, the time is over, or
  /// another thread wants the lock, which then gets it first. `looks`: polls for a while before it sleeps, because the
  /// caller did not. Returns false on timeout.
  bool sleep(Messenger& messenger, Timeout timeout, bool looks) {
    if (!used_) return messenger.wait(timeout, looks);
    set_sleeper(&messenger);
    const bool found = wanted_.load() != 0 || messenger.wait(timeout, looks);
    set_sleeper(nullptr);
    pass_on();
    return found;
  }
  /// The caller holds the lock. Lets a waiting thread have it first, if that thread gets a processor soon.
  void pass_on() {
    if (!used_ || wanted_.load() == 0) return;
    const std::uint64_t before = served_.load();
    mutex_.unlock();
    for (int i = 0; i < kYields && served_.load() == before; ++i) std::this_thread::yield();
    mutex_.lock();
  }
  /// The caller holds the lock. Gives the processor to other processes, and the lock to other threads.
  void yield() {
    if (used_) mutex_.unlock();
    std::this_thread::yield();
    if (used_) mutex_.lock();
  }
  /// The caller holds the lock. Notes that the application has posted something: a thread that polls and finds nothing
  /// is then not the only one, or not idle.
  void note_activity() { ++activity_; }
  [[nodiscard]] std::uint64_t activity() const { return activity_; }

 private:
  void set_sleeper(Messenger* messenger) {
    const std::lock_guard guard(sleeper_mutex_);
    sleeper_ = messenger;
  }
  void wake_sleeper() {
    const std::lock_guard guard(sleeper_mutex_);
    if (sleeper_ != nullptr) sleeper_->interrupt();
  }

  static constexpr int kYields = 100;

  const bool used_;
  std::mutex mutex_;
  std::atomic<int> wanted_{0};
  std::atomic<std::uint64_t> served_{0};  ///< number of waits for the lock that have ended
  std::uint64_t activity_ = 0;
  std::mutex sleeper_mutex_;
  Messenger* sleeper_ = nullptr;
};

}  // namespace wherry::mpi
