// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::arch {

/// One step of a loop that polls a word of another CPU. It keeps this CPU from speculating ahead, and lets the core's
/// other hardware thread run. It orders nothing, and does not yield the CPU to another thread (std::this_thread::yield
/// does).
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // YIELD does nothing on cores without hardware threads. ISB empties the pipeline, which takes as long as a pause
  // should.
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace wherry::arch
