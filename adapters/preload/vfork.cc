// SPDX-License-Identifier: Apache-2.0
//
// vfork returns twice on one stack, so no compiled function can contain it. A few instructions, like glibc's, call what
// must run before and after it.
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

// Called in the parent when the child is gone.
extern "C" __attribute__((visibility("hidden"))) long wherry_after_vfork(long result) noexcept {
  detail::in_vfork_child = false;
  all_shared_no_more();
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// The kernel preserves the parent's registers except rax, rcx and r11. So rdi holds the return address until the child
// no longer uses the stack.
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
