// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that change the signal mask, permanently or while they wait: a copy from a mapping must know whether
// SIGBUS and SIGSEGV are blocked.
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <ucontext.h>

#include <cstddef>

#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/fault_signals.hpp"
#include "hook.hpp"
#include "next.hpp"

// NOLINTBEGIN(readability-identifier-naming, readability-redundant-declaration): not every C library has all of them
extern "C" {
int __xpg_sigpause(int signal);
int __sigsuspend(const sigset_t* mask);
// Programs that were compiled with _FORTIFY_SOURCE call these.
void __longjmp_chk(__jmp_buf_tag* place, int value) noexcept __attribute__((noreturn));
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, std::size_t size);
// Newer than some C libraries.
int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask);
// The C library's header gives this name to another function.
int bsd_sigpause(int mask) __asm__("sigpause");
}
// NOLINTEND(readability-identifier-naming, readability-redundant-declaration)

using namespace wherry::preload;
namespace mapped = wherry::file::mapped;

namespace {

/// The function behind the hook, for names whose declarations are deprecated.
template <typename Function>
Function* next_as(Hook hook) {
  return reinterpret_cast<Function*>(next_function(hook));
}

/// Makes a call that waits with a mask of its own, which applies to handlers that run meanwhile.
template <typename Call>
auto wait_with(const sigset_t* mask, Call call) -> decltype(call()) {
  if (mask == nullptr) return call();
  const mapped::MaskChanges changes;
  return call();
}

template <typename Call>
auto change_mask(Call call) -> decltype(call()) {
  const mapped::MaskChanges changes;
  return call();
}

/// Sets the mask that the jump will set, so that the jump does not change it.
[[noreturn]] void jump(Hook hook, __jmp_buf_tag* place, int value) {
  if (place[0].__mask_was_saved != 0 && mapped::catches_faults()) {
    change_mask([&] { return WHERRY_NEXT(sigprocmask, SIG_SETMASK, &place[0].__saved_mask, nullptr); });
    mapped::forget_mask_changes();
  }
  mapped::forget_copy_under_way();
  next_as<void(__jmp_buf_tag*, int)>(hook)(place, value);
  __builtin_unreachable();
}

}  // namespace

WHERRY_HOOK int sigprocmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  return wait_with(wanted, [&] { return WHERRY_NEXT(sigprocmask, how, wanted, before); });
}

WHERRY_HOOK int pthread_sigmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  return wait_with(wanted, [&] { return WHERRY_NEXT(pthread_sigmask, how, wanted, before); });
}

WHERRY_HOOK int sighold(int signal) noexcept {
  return change_mask([&] { return next_as<int(int)>(Hook::k_sighold)(signal); });
}

WHERRY_HOOK int sigrelse(int signal) noexcept {
  return change_mask([&] { return next_as<int(int)>(Hook::k_sigrelse)(signal); });
}

WHERRY_HOOK int sigblock(int mask) noexcept {
  return change_mask([&] { return next_as<int(int)>(Hook::k_sigblock)(mask); });
}

WHERRY_HOOK int sigsetmask(int mask) noexcept {
  return change_mask([&] { return next_as<int(int)>(Hook::k_sigsetmask)(mask); });
}

WHERRY_HOOK int sigsuspend(const sigset_t* mask) {
  return wait_with(mask, [&] { return WHERRY_NEXT(sigsuspend, mask); });
}

WHERRY_HOOK int __sigsuspend(const sigset_t* mask) { return sigsuspend(mask); }

WHERRY_HOOK int bsd_sigpause(int mask) {
  return change_mask([&] { return next_as<int(int)>(Hook::k_sigpause)(mask); });
}

WHERRY_HOOK int __xpg_sigpause(int signal) {
  return change_mask([&] { return next_as<int(int)>(Hook::k___xpg_sigpause)(signal); });
}

WHERRY_HOOK int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return wait_with(mask, [&] { return WHERRY_NEXT(ppoll, fds, count, timeout, mask); });
}

WHERRY_HOOK int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                            std::size_t size) {
  return wait_with(mask, [&] { return WHERRY_NEXT(__ppoll_chk, fds, count, timeout, mask, size); });
}

WHERRY_HOOK int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, const timespec* timeout,
                        const sigset_t* mask) {
  return wait_with(mask, [&] { return WHERRY_NEXT(pselect, count, readable, writable, exceptional, timeout, mask); });
}

WHERRY_HOOK int epoll_pwait(int fd, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  return wait_with(mask, [&] { return WHERRY_NEXT(epoll_pwait, fd, events, most, timeout, mask); });
}

WHERRY_HOOK int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  return wait_with(mask, [&] { return WHERRY_NEXT(epoll_pwait2, fd, events, most, timeout, mask); });
}

WHERRY_HOOK void longjmp(jmp_buf place, int value) noexcept { jump(Hook::k_longjmp, place, value); }

WHERRY_HOOK void _longjmp(jmp_buf place, int value) noexcept { jump(Hook::k__longjmp, place, value); }

WHERRY_HOOK void siglongjmp(sigjmp_buf place, int value) noexcept { jump(Hook::k_siglongjmp, place, value); }

WHERRY_HOOK void __longjmp_chk(__jmp_buf_tag* place, int value) noexcept { jump(Hook::k___longjmp_chk, place, value); }

WHERRY_HOOK int setcontext(const ucontext_t* context) noexcept {
  mapped::always_ask_for_mask();
  return WHERRY_NEXT(setcontext, context);
}

#if defined(__x86_64__)

extern "C" __attribute__((visibility("hidden"))) void* wherry_before_swapcontext() noexcept {
  mapped::always_ask_for_mask();
  return next_function(Hook::k_swapcontext);
}

// swapcontext may return many times: no frame may stand between it and its caller.
asm(R"(
  .text
  .globl swapcontext
  .type swapcontext, @function
swapcontext:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call wherry_before_swapcontext
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size swapcontext, .-swapcontext
)");

#endif
