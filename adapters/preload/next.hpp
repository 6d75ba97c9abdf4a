// SPDX-License-Identifier: Apache-2.0
// The functions behind the hooks, which the program would call without this library.
#pragma once

#include <cstddef>

// clang-format has no stable layout for lists like this.
// clang-format off

// Every hooked name. If this C library lacks a name, there is no function behind it, and nothing can call it.
#define WHERRY_HOOKS(X)                                                                                         \
  X(open) X(openat) X(creat) X(__open_2) X(__openat_2) X(close) X(close_range) X(closefrom) X(dup) X(dup2)      \
  X(dup3) X(fcntl) X(ioctl) X(read) X(__read_chk) X(pread) X(__pread_chk) X(readv) X(preadv) X(preadv2)         \
  X(write) X(pwrite) X(writev) X(pwritev) X(pwritev2) X(vdprintf) X(__vdprintf_chk) X(backtrace_symbols_fd)     \
  X(lseek) X(truncate) X(ftruncate) X(fallocate) X(copy_file_range) X(sendfile) X(splice) X(lockf) X(fopen)     \
  X(freopen) X(fdopen) X(fclose) X(fcloseall) X(fdopendir) X(closedir) X(sendmsg) X(sendmmsg) X(daemon)         \
  X(login_tty) X(fork) X(_Fork) X(clone) X(posix_spawn) X(posix_spawnp) X(system) X(popen) X(forkpty)           \
  X(execve) X(execveat) X(execvpe) X(fexecve) X(unshare) X(syscall) X(wordexp) X(pidfd_getfd)                   \
  X(__register_atfork) X(open_by_handle_at) X(posix_spawn_file_actions_addopen) X(mmap) X(munmap) X(mremap)     \
  X(shmat) X(sigsuspend) X(sigpause) X(__xpg_sigpause) X(sighold) X(sigrelse) X(sigblock) X(sigsetmask)         \
  X(ppoll) X(__ppoll_chk) X(pselect) X(epoll_pwait) X(epoll_pwait2) X(longjmp) X(_longjmp) X(siglongjmp)        \
  X(__longjmp_chk) X(setcontext) X(swapcontext) X(sigaction) X(signal) X(__sysv_signal) X(sigset)               \
  X(sigignore) X(sigprocmask) X(pthread_sigmask) X(prctl) X(mlockall) X(setrlimit) X(prlimit)                   \
  X(dl_iterate_phdr) X(pthread_create)

// clang-format on

namespace wherry::preload {

enum class Hook : unsigned {
#define WHERRY_HOOK_NAME(name) k_##name,
  WHERRY_HOOKS(WHERRY_HOOK_NAME)
#undef WHERRY_HOOK_NAME
      kCount
};

/// Returns the function behind a hook, never null: if there is none, one that fails with ENOSYS. It is looked up when
/// it is first needed, even in a signal handler or a forked child, because most processes call only a few.
void* next_function(Hook hook) noexcept;

/// Looks up the functions that a child usually calls between fork and exec. Each child would otherwise touch seven
/// pages for that.
void find_functions_of_children() noexcept;

/// Returns the function `name` that the caller would find without this library, perhaps in a library that it has loaded
/// itself. Never null, as above.
void* next_function_for(const void* caller, const char* name) noexcept;
/// Calls that function in a hook, for the hook's caller.
#define WHERRY_NEXT_FOR_CALLER(name, ...) \
  (reinterpret_cast<decltype(&::name)>(next_function_for(__builtin_return_address(0), #name))(__VA_ARGS__))

}  // namespace wherry::preload

/// Calls the function behind the hook `name`.
#define WHERRY_NEXT(name, ...)                                                                               \
  (reinterpret_cast<decltype(&::name)>(::wherry::preload::next_function(::wherry::preload::Hook::k_##name))( \
      __VA_ARGS__))
