// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::arch {

/// One step of a loop that looks at a word another CPU will write: tells this CPU that nothing is to be gained by
/// running ahead, and lets the core's other hardware thread run meanwhile. Does not order anything, and does not give
/// the CPU to another thread of the system: that is std::this_thread::yield.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // YIELD does nothing on cores without hardware threads; ISB empties the pipeline and so takes the time a pause
  // should.
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace wherry::arch
