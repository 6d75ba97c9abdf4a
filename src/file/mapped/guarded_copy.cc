// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/guarded_copy.hpp"

#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#if __has_include(<sys/platform/x86.h>)
// The header uses this C keyword, which clang does not know in C++.
#define _Bool bool  // NOLINT(bugprone-reserved-identifier,cppcoreguidelines-macro-usage)
#include <sys/platform/x86.h>
#undef _Bool
#endif

namespace wherry::file::mapped {

#if defined(__x86_64__)

// Both return 0 if all was copied, 1 after a fault. They keep the stack pointer, so that one exit fits every
// instruction.
// NOLINTBEGIN(readability-identifier-naming): labels of the code below
extern "C" {
int wherry_guarded_copy_avx2(void* to, const void* from, std::size_t bytes) noexcept;
int wherry_guarded_copy_string(void* to, const void* from, std::size_t bytes) noexcept;
extern const char wherry_guarded_copies[];
extern const char wherry_guarded_copies_end[];
extern const char wherry_guarded_copy_failed[];
extern const char wherry_guarded_copy_failed_avx2[];
}
// NOLINTEND(readability-identifier-naming)

// `rep movsb` serves processors without AVX2; it is slower than AVX2 from 33 bytes up on AMD. Up to 32 bytes both copy
// the two ends, which overlap. The AVX2 copy moves the first line, then 128 bytes per step to aligned addresses, then
// the last 128 bytes. It prefetches 2 KiB ahead, also after the end of this read: the hardware prefetch stops at each
// page, which costs a third of the time of a 4 KiB copy, and the next read often continues there. A prefetch never
// faults.
asm(R"(
  .text
  .p2align 6
  .hidden wherry_guarded_copies
  .globl wherry_guarded_copies
wherry_guarded_copies:

  .p2align 5
  .cfi_startproc
.Lwherry_guarded_small:
  cmpl $16, %edx
  jae 4f
  cmpl $8, %edx
  jae 3f
  cmpl $4, %edx
  jae 2f
  testl %edx, %edx
  je 1f
  movzbl (%rsi), %eax
  movzbl -1(%rsi,%rdx), %ecx
  movl %edx, %r8d
  shrl $1, %r8d
  movzbl (%rsi,%r8), %r9d
  movb %al, (%rdi)
  movb %r9b, (%rdi,%r8)
  movb %cl, -1(%rdi,%rdx)
1:
  xorl %eax, %eax
  ret
2:
  movl (%rsi), %eax
  movl -4(%rsi,%rdx), %ecx
  movl %eax, (%rdi)
  movl %ecx, -4(%rdi,%rdx)
  xorl %eax, %eax
  ret
3:
  movq (%rsi), %rax
  movq -8(%rsi,%rdx), %rcx
  movq %rax, (%rdi)
  movq %rcx, -8(%rdi,%rdx)
  xorl %eax, %eax
  ret
4:
  movups (%rsi), %xmm0
  movups -16(%rsi,%rdx), %xmm1
  movups %xmm0, (%rdi)
  movups %xmm1, -16(%rdi,%rdx)
  xorl %eax, %eax
  ret
  .cfi_endproc

  .p2align 5
  .hidden wherry_guarded_copy_string
  .globl wherry_guarded_copy_string
  .type wherry_guarded_copy_string, @function
wherry_guarded_copy_string:
  .cfi_startproc
  endbr64
  cmpq $32, %rdx
  jbe .Lwherry_guarded_small
  movq %rdx, %rcx
  rep movsb
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size wherry_guarded_copy_string, .-wherry_guarded_copy_string

  .p2align 6
  .hidden wherry_guarded_copy_avx2
  .globl wherry_guarded_copy_avx2
  .type wherry_guarded_copy_avx2, @function
wherry_guarded_copy_avx2:
  .cfi_startproc
  endbr64
  cmpq $32, %rdx
  jbe .Lwherry_guarded_small
  cmpq $64, %rdx
  ja 1f
  vmovdqu (%rsi), %ymm0
  vmovdqu -32(%rsi,%rdx), %ymm1
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, -32(%rdi,%rdx)
  vzeroupper
  xorl %eax, %eax
  ret
1:
  vmovdqu (%rsi), %ymm0
  vmovdqu 32(%rsi), %ymm1
  cmpq $128, %rdx
  ja 2f
  vmovdqu -64(%rsi,%rdx), %ymm2
  vmovdqu -32(%rsi,%rdx), %ymm3
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, 32(%rdi)
  vmovdqu %ymm2, -64(%rdi,%rdx)
  vmovdqu %ymm3, -32(%rdi,%rdx)
  vzeroupper
  xorl %eax, %eax
  ret
2:
  leaq -128(%rdi,%rdx), %r8
  leaq -128(%rsi,%rdx), %r9
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, 32(%rdi)
  movl %edi, %ecx
  andl $63, %ecx
  subq $64, %rcx
  subq %rcx, %rdi
  subq %rcx, %rsi
  cmpq %r8, %rdi
  jae 4f
  .p2align 5
3:
  prefetcht0 2048(%rsi)
  prefetcht0 2112(%rsi)
  vmovdqu (%rsi), %ymm0
  vmovdqu 32(%rsi), %ymm1
  vmovdqu 64(%rsi), %ymm2
  vmovdqu 96(%rsi), %ymm3
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, 32(%rdi)
  vmovdqu %ymm2, 64(%rdi)
  vmovdqu %ymm3, 96(%rdi)
  subq $-128, %rsi
  subq $-128, %rdi
  cmpq %r8, %rdi
  jb 3b
4:
  vmovdqu (%r9), %ymm0
  vmovdqu 32(%r9), %ymm1
  vmovdqu 64(%r9), %ymm2
  vmovdqu 96(%r9), %ymm3
  vmovdqu %ymm0, (%r8)
  vmovdqu %ymm1, 32(%r8)
  vmovdqu %ymm2, 64(%r8)
  vmovdqu %ymm3, 96(%r8)
  vzeroupper
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size wherry_guarded_copy_avx2, .-wherry_guarded_copy_avx2

  .hidden wherry_guarded_copies_end
  .globl wherry_guarded_copies_end
wherry_guarded_copies_end:
  .hidden wherry_guarded_copy_failed_avx2
  .globl wherry_guarded_copy_failed_avx2
wherry_guarded_copy_failed_avx2:
  .cfi_startproc
  vzeroupper
  .hidden wherry_guarded_copy_failed
  .globl wherry_guarded_copy_failed
wherry_guarded_copy_failed:
  movl $1, %eax
  ret
  .cfi_endproc
)");

namespace {

using Copy = int (*)(void* to, const void* from, std::size_t bytes);

#if __has_include(<sys/platform/x86.h>)
/// As the C library found it at process start: asking the processor takes tens of microseconds in a virtual machine.
bool has_avx2() noexcept { return CPU_FEATURE_ACTIVE(AVX2); }
#else
bool has_avx2() noexcept { return __builtin_cpu_supports("avx2"); }
#endif

int choose_and_copy(void* to, const void* from, std::size_t bytes) noexcept;
constinit std::atomic<Copy> chosen{choose_and_copy};

int choose_and_copy(void* to, const void* from, std::size_t bytes) noexcept {
  const Copy copy = has_avx2() ? wherry_guarded_copy_avx2 : wherry_guarded_copy_string;
  chosen.store(copy, std::memory_order_relaxed);
  return copy(to, from, bytes);
}

}  // namespace

bool can_guard_copies() noexcept { return true; }

bool copy_or_fault(void* to, const void* from, std::size_t bytes) noexcept {
  return chosen.load(std::memory_order_relaxed)(to, from, bytes) == 0;
}

bool resume_after_fault(void* context) noexcept {
  greg_t& instruction = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  const auto at = static_cast<std::uintptr_t>(instruction);
  if (at < reinterpret_cast<std::uintptr_t>(wherry_guarded_copies) ||
      at >= reinterpret_cast<std::uintptr_t>(wherry_guarded_copies_end)) {
    return false;
  }
  const bool wide = chosen.load(std::memory_order_relaxed) == wherry_guarded_copy_avx2;
  instruction = reinterpret_cast<greg_t>(wide ? wherry_guarded_copy_failed_avx2 : wherry_guarded_copy_failed);
  return true;
}

#else

bool can_guard_copies() noexcept { return false; }

bool copy_or_fault(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) noexcept { return false; }

bool resume_after_fault(void* /*context*/) noexcept { return false; }

#endif

}  // namespace wherry::file::mapped
