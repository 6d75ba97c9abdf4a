// SPDX-License-Identifier: Apache-2.0
//
// vfork returns twice on one stack: no compiled function can stand around it. What comes before and after it is called
// from a few instructions, as glibc has them.
#include "vfork.hpp"

#include <unistd.h>

#include <cerrno>

#include "hook.hpp"
#include "sharing.hpp"

using namespace wherry::preload;

#if defined(__x86_64__)

extern "C" __attribute__((visibility("hidden"))) void wherry_before_vfork() noexcept {
  all_shared_from_now();
  detail::vfork_child_is_filtered = false;
  detail::in_vfork_child = true;
}

// In the parent, when the child is gone.
extern "C" __attribute__((visibility("hidden"))) long wherry_after_vfork(long result) noexcept {
  detail::in_vfork_child = false;
  all_shared_no_more();
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// The kernel keeps every register of the parent's but rax, rcx and r11, so the return address waits in rdi for the
// child to be done with the stack.
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  endbr64
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call wherry_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %rdi
  movl $58, %eax
  syscall
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rip, -8
  testq %rax, %rax
  jz 1f
  movq %rax, %rdi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call wherry_after_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
1:
  ret
  .cfi_endproc
  .size vfork, .-vfork
)");

#else

WHERRY_HOOK pid_t vfork() noexcept { return fork(); }

#endif

WHERRY_OTHER_NAME(__vfork, vfork);
