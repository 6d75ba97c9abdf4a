// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/copies_under_way.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace wherry::file::mapped {

[[gnu::tls_model("initial-exec")]] constinit thread_local detail::CopyingThread* detail::copying_thread = nullptr;

namespace {

using detail::CopyingThread;

constexpr std::size_t kThreads = 4096;
constexpr std::size_t kProbes = 32;
constexpr std::uint64_t kLongestWait = 1'000'000'000;  // ns

// Zero pages take no memory until they are written. A thread that ends leaves its entry to a later thread.
constinit std::array<CopyingThread, kThreads> threads{};

int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

bool is_alive(int thread) { return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0; }

CopyingThread* find_place(int me) {
  const auto place = [me](std::size_t probe) -> CopyingThread& {
    return threads[(static_cast<std::size_t>(me) + probe) % kThreads];
  };
  for (std::size_t i = 0; i < kProbes; i++) {
    int there = 0;
    if (place(i).thread.compare_exchange_strong(there, me, std::memory_order_relaxed) || there == me) return &place(i);
  }
  for (std::size_t i = 0; i < kProbes; i++) {
    int there = place(i).thread.load(std::memory_order_relaxed);
    if (!is_alive(there) && place(i).thread.compare_exchange_strong(there, me, std::memory_order_relaxed))
      return &place(i);
  }
  return nullptr;
}

/// A barrier on all processors that run threads of this process.
bool pass_barrier() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
         ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;  // COPYING barrier: their copies
}

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// False: the copy has not ended by then.
bool wait_for(const CopyingThread& other, std::uint64_t deadline) {
  while (other.copies.load(std::memory_order_acquire)) {  // COPYING acquire: it has ended
    if (&other == detail::copying_thread) return false;
    if (!is_alive(other.thread)) return true;
    if (now() > deadline) return false;
    sched_yield();
  }
  return true;
}

bool wait_for_all() {
  if (!pass_barrier()) return false;
  const std::uint64_t deadline = now() + kLongestWait;
  for (const CopyingThread& other : threads) {
    if (!wait_for(other, deadline)) return false;
  }
  return true;
}

}  // namespace

CopyingThread* detail::find_copying_thread() noexcept {
  const int error = errno;
  copying_thread = find_place(this_thread());
  // The previous thread of this entry may have ended in a copy.
  if (copying_thread != nullptr) copying_thread->copies.store(false, std::memory_order_relaxed);
  errno = error;
  return copying_thread;
}

void forget_copy_under_way() noexcept {
  if (detail::copying_thread == nullptr) return;
  detail::copying_thread->copies.store(false, std::memory_order_release);  // COPYING release: its end
}

bool wait_for_copies() noexcept {
  const int error = errno;
  const bool ended = wait_for_all();
  errno = error;
  return ended;
}

// The child's thread has another number, and the parent's other threads do not exist in it.
void forget_copies_after_fork() noexcept { detail::copying_thread = nullptr; }

}  // namespace wherry::file::mapped
