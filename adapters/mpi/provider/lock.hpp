// SPDX-License-Identifier: Apache-2.0
// One lock for all objects of a domain, which a program of one thread does without. It is held asleep, since a mailbox
// is of one thread at a time; a thread that wants it wakes the sleeper.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "messenger.hpp"

namespace wherry::mpi {

class DomainLock {
 public:
  explicit DomainLock(bool used) : used_(used) {}

  void lock() {
    if (!used_ || mutex_.try_lock()) return;
    wanted_.fetch_add(1);
    wake_sleeper();
    mutex_.lock();
    wanted_.fetch_sub(1);
  }
  void unlock() {
    if (used_) mutex_.unlock();
  }
  /// Held: sleeps in the messenger's mailbox until it has something to do, the time is over, or another thread wants
  /// the lock, which it then gets first.
  void sleep(Messenger& messenger, Timeout timeout) {
    if (!used_) {
      messenger.wait(timeout);
      return;
    }
    set_sleeper(&messenger);
    if (wanted_.load() == 0) messenger.wait(timeout);
    set_sleeper(nullptr);
    pass_on();
  }
  /// Held: lets others have it.
  void pass_on() {
    if (!used_ || wanted_.load() == 0) return;
    mutex_.unlock();
    std::this_thread::yield();
    mutex_.lock();
  }

 private:
  void set_sleeper(Messenger* messenger) {
    const std::lock_guard guard(sleeper_mutex_);
    sleeper_ = messenger;
  }
  void wake_sleeper() {
    const std::lock_guard guard(sleeper_mutex_);
    if (sleeper_ != nullptr) sleeper_->interrupt();
  }

  const bool used_;
  std::mutex mutex_;
  std::atomic<int> wanted_{0};
  std::mutex sleeper_mutex_;
  Messenger* sleeper_ = nullptr;
};

}  // namespace wherry::mpi
