// SPDX-License-Identifier: Apache-2.0
#include "memory/other_stack.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace wherry::memory {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

struct Call {
  void (*function)(void*);
  void* argument;
};

/// Takes the pointer in two halves, because makecontext() passes only ints.
void begin(unsigned upper, unsigned lower) {
  const auto* call = std::bit_cast<const Call*>(std::uintptr_t{upper} << 32 | lower);
  call->function(call->argument);
}

}  // namespace

bool call_on_other_stack(void (*function)(void*), void* argument) noexcept {
  static_assert(sizeof(void*) == 8 && sizeof(unsigned) == 4);
  void* const stack =
      ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  ucontext_t here{};
  ucontext_t there{};
  const Call call{.function = function, .argument = argument};
  const bool possible = ::getcontext(&there) == 0;
  if (possible) {
    int cancelled = PTHREAD_CANCEL_ENABLE;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled);  // nothing unwinds through the other stack
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = kStackBytes;
    there.uc_link = &here;
    ::sigfillset(&there.uc_sigmask);
    const auto address = std::bit_cast<std::uintptr_t>(&call);
    ::makecontext(&there, reinterpret_cast<void (*)()>(begin), 2, static_cast<unsigned>(address >> 32),
                  static_cast<unsigned>(address));
    ::swapcontext(&here, &there);
    ::pthread_setcancelstate(cancelled, nullptr);
  }
  ::munmap(stack, kStackBytes);
  return possible;
}

}  // namespace wherry::memory
