// SPDX-License-Identifier: Apache-2.0
// Barriers between CPUs, one function for each use. Words are published and read with C++ atomics (release and acquire)
// where they are used. Only barriers that C++ has no word for are here.
//
// May include: base.
#pragma once

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define WHERRY_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WHERRY_THREAD_SANITIZER 1
#endif
#endif
#ifndef WHERRY_THREAD_SANITIZER
#define WHERRY_THREAD_SANITIZER 0
#endif

namespace wherry::arch {

/// Full barrier between a store that the other side reads and a load of what the other side stores. Used by the
/// sleep-and-wake handshake: publish, then look whether the peer sleeps; or announce sleep, then look whether something
/// was published.
/// Guarantees: of two CPUs that each do this, at least one sees the other's store.
/// Does not guarantee: that the store is visible by the time the next instruction runs on another CPU, nor anything
/// about stores to devices or to memory that is not coherent.
inline void publish_then_look() {
#if WHERRY_THREAD_SANITIZER
  // ThreadSanitizer does not model fences: a read-modify-write on one shared word gives it the same order.
  static std::atomic<int> order{0};
  order.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// The publisher's half of the handshake without a fence, if the sleeper's half is interrupt_publishers(). Only for a
/// process for which takes_part_in_interrupts() is true, towards a peer that knows it must interrupt. Guarantees: the
/// compiler keeps the order. The CPU may still load before its store is visible.
inline void publish_then_look_unfenced() {
#if WHERRY_THREAD_SANITIZER
  publish_then_look();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// The sleeper's half where publishers publish unfenced: makes every CPU on which such a process runs go through a full
/// barrier, by an interrupt. 0.2 us when no other CPU runs one, 10 us on a virtual machine when one does.
/// Guarantees: a publisher's store before its barrier is visible afterwards; its look after its barrier sees what the
/// caller stored before the call. So at least one side sees the other's store, as with publish_then_look() on both.
/// Does not guarantee: anything about processes that do not take part.
void interrupt_publishers() noexcept;

/// Whether this process can interrupt others and be interrupted. The first call registers the process with the kernel,
/// which can take 20 ms in a process with threads. Forked children are registered, too. False: the kernel is not Linux,
/// is older than 4.16, or refuses.
bool takes_part_in_interrupts() noexcept;

/// Orders stores that bypass the caches (copy_streaming) before the release store that publishes them. Guarantees: an
/// acquire that sees a later release store of this thread sees the streaming stores. Does not guarantee: that the bytes
/// have reached memory or a device. That needs a flush, which only a fabric over such memory knows. Ordinary stores do
/// not need it: a release store alone publishes them.
inline void drain_streaming_stores() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb ishst" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace wherry::arch
