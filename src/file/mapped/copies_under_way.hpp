// SPDX-License-Identifier: Apache-2.0
//
// Which threads are in a guarded copy: before the kernel takes back a signal that a copy depends on, the copies under
// way must end. A thread marks itself by plain stores; to wait makes every processor pass a barrier (membarrier).
#pragma once

#include <atomic>

namespace wherry::file::mapped {

namespace detail {

struct alignas(64) CopyingThread {
  std::atomic<int> thread;  // 0: free
  std::atomic<bool> copies;
};
// Null: this thread has made no copy yet.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CopyingThread* copying_thread;
/// Null: too many threads copy.
CopyingThread* find_copying_thread() noexcept;

}  // namespace detail

/// A guarded copy of this thread, from before takes_faults() is asked to its end. A handler that interrupts it may have
/// one of its own. One that leaves it by a jump calls forget_copy_under_way().
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
  /// False: no copy may be made.
  explicit operator bool() const { return thread_ != nullptr; }

 private:
  detail::CopyingThread* thread_;
  bool was_copying_ = false;
};

/// A jump leaves the copy that this thread was in.
void forget_copy_under_way() noexcept;

/// Waits for the copies that are under way, a second at most. False: one of them may still be, or this thread's own is.
/// Keeps errno.
bool wait_for_copies() noexcept;

/// In a forked child.
void forget_copies_after_fork() noexcept;

}  // namespace wherry::file::mapped
