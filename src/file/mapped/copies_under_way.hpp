// SPDX-License-Identifier: Apache-2.0
//
// Which threads are in a guarded copy. Before the kernel gets back a signal that copies depend on, all copies in
// progress must end. A thread marks itself by plain stores; the waiting thread pays, with a barrier on every processor
// (membarrier).
#pragma once

#include <atomic>

namespace wherry::file::mapped {

namespace detail {

struct alignas(64) CopyingThread {
  std::atomic<int> thread;  // 0: free
  std::atomic<bool> copies;
};
// Null: this thread has not copied yet.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CopyingThread* copying_thread;
/// Null: too many threads copy.
CopyingThread* find_copying_thread() noexcept;

}  // namespace detail

/// Marks a guarded copy of this thread. Must live from before the call of takes_faults() to the end of the copy. A
/// handler that interrupts it may make a copy of its own. A handler that leaves it by a jump calls
/// forget_copy_under_way().
class CopyUnderWay {
 public:
  CopyUnderWay() noexcept : thread_(detail::copying_thread) {
    if (thread_ == nullptr) [[unlikely]]
      thread_ = detail::find_copying_thread();
    if (thread_ == nullptr) return;
    was_copying_ = thread_->copies.load(std::memory_order_relaxed);
    thread_->copies.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // COPYING barrier: whether signals are caught
  }
  ~CopyUnderWay() {
    if (thread_ != nullptr) thread_->copies.store(was_copying_, std::memory_order_release);  // COPYING release: its end
  }
  CopyUnderWay(const CopyUnderWay&) = delete;
  CopyUnderWay& operator=(const CopyUnderWay&) = delete;
  /// False: the copy is not allowed.
  explicit operator bool() const { return thread_ != nullptr; }

 private:
  detail::CopyingThread* thread_;
  bool was_copying_ = false;
};

/// Call when a jump leaves the copy that this thread was in.
void forget_copy_under_way() noexcept;

/// Waits at most 1 s for all copies in progress. False: one may still be running, or this thread itself is in one.
/// Keeps errno.
bool wait_for_copies() noexcept;

/// Call in a forked child.
void forget_copies_after_fork() noexcept;

}  // namespace wherry::file::mapped
