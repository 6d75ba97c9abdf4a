// SPDX-License-Identifier: Apache-2.0
//
// syscall(): passes calls by number to the hooks of the same names.
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/not_cancelled.hpp"
#include "file/mapped/fault_signals.hpp"
#include "hook.hpp"
#include "hooks_open.hpp"
#include "next.hpp"
#include "processes.hpp"
#include "program_memory.hpp"
#include "sharing.hpp"
#include "stepping_aside.hpp"
#include "write_rings.hpp"

using namespace wherry::preload;

namespace {

using Words = std::array<long, 6>;

template <typename Type>
Type as(long word) {
  if constexpr (std::is_pointer_v<Type>) {
    return reinterpret_cast<Type>(word);  // NOLINT(performance-no-int-to-ptr): it was one
  } else {
    return static_cast<Type>(word);
  }
}

/// Calls a hook with the words, each converted to the type of its parameter.
template <typename Result, typename... Types>
long by_name(Result (*hook)(Types...), const Words& words) {
  const auto call = [&]<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return hook(as<Types>(words[kPlaces])...);
  };
  const Result result = call(std::index_sequence_for<Types...>());
  if constexpr (std::is_pointer_v<Result>) {
    return reinterpret_cast<long>(result);
  } else {
    return static_cast<long>(result);
  }
}

std::optional<long> that_reads(long number, const Words& words) {
  switch (number) {
    case SYS_read:
      return by_name(&read, words);
    case SYS_pread64:
      return by_name(&pread, words);
    case SYS_readv:
      return by_name(&readv, words);
    case SYS_preadv:
      return by_name(&preadv, words);
    case SYS_lseek:
      return by_name(&lseek, words);
    case SYS_preadv2:
      // The offset has two words, of which the kernel uses the first here.
      return preadv2(as<int>(words[0]), as<const iovec*>(words[1]), as<int>(words[2]), words[3], as<int>(words[5]));
    default:
      return std::nullopt;
  }
}

std::optional<long> that_changes(long number, const Words& words) {
  switch (number) {
    case SYS_write:
      return by_name(&write, words);
    case SYS_pwrite64:
      return by_name(&pwrite, words);
    case SYS_writev:
      return by_name(&writev, words);
    case SYS_pwritev:
      return by_name(&pwritev, words);
    case SYS_pwritev2:
      // The offset has two words, of which the kernel uses the first here.
      return pwritev2(as<int>(words[0]), as<const iovec*>(words[1]), as<int>(words[2]), words[3], as<int>(words[5]));
    case SYS_truncate:
      return by_name(&truncate, words);
    case SYS_ftruncate:
      return by_name(&ftruncate, words);
    case SYS_fallocate:
      return by_name(&fallocate, words);
    case SYS_copy_file_range:
      return by_name(&copy_file_range, words);
    case SYS_sendfile:
      return by_name(&sendfile, words);
    case SYS_splice:
      return by_name(&splice, words);
    case SYS_ioctl:
      return ioctl(as<int>(words[0]), as<unsigned long>(words[1]), words[2]);
    default:
      return std::nullopt;
  }
}

std::optional<long> that_opens(long number, const Words& words) {
  switch (number) {
#if defined(SYS_open)
    case SYS_open:
      return open(as<const char*>(words[0]), as<int>(words[1]), as<mode_t>(words[2]));
    case SYS_creat:
      return by_name(&creat, words);
    case SYS_dup2:
      return by_name(&dup2, words);
#endif
    case SYS_openat:
      return openat(as<int>(words[0]), as<const char*>(words[1]), as<int>(words[2]), as<mode_t>(words[3]));
    case SYS_openat2: {
      const auto fd = WHERRY_NEXT(syscall, number, words[0], words[1], words[2], words[3]);
      return fd < 0 ? fd : opened(static_cast<int>(fd), static_cast<int>(as<const open_how*>(words[2])->flags));
    }
    case SYS_open_by_handle_at:
      return by_name(&open_by_handle_at, words);
    case SYS_close:
      return by_name(&close, words);
    case SYS_close_range:
      return by_name(&close_range, words);
    case SYS_dup:
      return by_name(&dup, words);
    case SYS_dup3:
      return by_name(&dup3, words);
    case SYS_pidfd_getfd: {
      share_offset(as<int>(words[1]));
      return doubled(static_cast<int>(WHERRY_NEXT(syscall, number, words[0], words[1], words[2])));
    }
    case SYS_fcntl:
      return fcntl(as<int>(words[0]), as<int>(words[1]), words[2]);
    case SYS_sendmsg:
      return by_name(&sendmsg, words);
    case SYS_sendmmsg:
      return by_name(&sendmmsg, words);
    default:
      return std::nullopt;
  }
}

/// Makes a fork that the C library does not know of. Its child continues here, if it has its own memory.
long forked(long number, const Words& words, std::uint64_t flags) {
  prepare_clone(flags);
  if ((flags & CLONE_VM) != 0) {
    return WHERRY_NEXT(syscall, number, words[0], words[1], words[2], words[3], words[4], words[5]);
  }
  const AllShared shared;
  const long child = WHERRY_NEXT(syscall, number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (child == 0) repair_after_fork();
  return child;
}

std::optional<long> that_makes_processes(long number, const Words& words) {
  switch (number) {
#if defined(SYS_fork)
    case SYS_fork:
      return forked(number, words, 0);
    case SYS_vfork:
      // Not vfork: parent and child cannot both return through one frame of this function.
      return forked(SYS_fork, words, 0);
#endif
    case SYS_clone: {
      // Without its own stack the child is like vfork's.
      Words separate = words;
      if (words[1] == 0) separate[0] &= ~static_cast<long>(CLONE_VM | CLONE_VFORK);
      return forked(number, separate, static_cast<std::uint64_t>(separate[0]));
    }
    case SYS_clone3: {
      const auto* const flags = as<const std::uint64_t*>(words[0]);
      if (!can_read(flags, sizeof(*flags))) return std::nullopt;
      return forked(number, words, *flags);
    }
    case SYS_unshare:
      return by_name(&unshare, words);
    case SYS_execve:
      return by_name(&execve, words);
    case SYS_execveat:
      return by_name(&execveat, words);
    case SYS_io_uring_setup:
      share_all_for_good();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// A handler may run in these calls, and leave them by a jump.
std::optional<long> that_changes_the_mask(long number, const Words& words) {
  switch (number) {
    case SYS_rt_sigprocmask:
    case SYS_rt_sigsuspend:
    case SYS_pselect6:
    case SYS_ppoll:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_io_pgetevents: {
      const wherry::file::mapped::MaskChanges changes;
      return WHERRY_NEXT(syscall, number, words[0], words[1], words[2], words[3], words[4], words[5]);
    }
    default:
      return std::nullopt;
  }
}

/// Calls that affect the whole process: its signals, its memory, and which calls it may make.
std::optional<long> that_rules(long number, const Words& words) {
  switch (number) {
    case SYS_rt_sigaction:
      // The call replaces the handler of guarded copies, or sets one that this library does not know.
      if (wherry::file::mapped::is_fault_signal(static_cast<int>(words[0])) && words[1] != 0) step_aside();
      return std::nullopt;
    case SYS_seccomp: {
      if (words[0] != SECCOMP_SET_MODE_STRICT && words[0] != SECCOMP_SET_MODE_FILTER) return std::nullopt;
      const FilterBegins filter;
      return filter.ended(WHERRY_NEXT(syscall, number, words[0], words[1], words[2]));
    }
    case SYS_prctl:
      return prctl(as<int>(words[0]), words[1], words[2], words[3], words[4]);
    case SYS_mmap:
      return by_name(&mmap, words);
    case SYS_munmap:
      return by_name(&munmap, words);
    case SYS_mremap:
      return reinterpret_cast<long>(mremap(as<void*>(words[0]), as<std::size_t>(words[1]), as<std::size_t>(words[2]),
                                           as<int>(words[3]), as<void*>(words[4])));
    case SYS_shmat:
      return by_name(&shmat, words);
    case SYS_mlockall:
      return by_name(&mlockall, words);
    case SYS_setrlimit:
      if (words[0] == RLIMIT_AS) unmap_for_good();
      if (words[0] == RLIMIT_FSIZE) file_size_limit_changes();
      return std::nullopt;
    case SYS_prlimit64:
      if (words[1] == RLIMIT_AS && words[2] != 0) unmap_for_good();
      if (words[1] == RLIMIT_FSIZE && words[2] != 0) file_size_limit_changes();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

WHERRY_HOOK long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  Words words{};
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  if (const auto result = that_changes_the_mask(number, words)) return *result;
  {
    // The hooks are cancellation points, syscall() is not. Cancellation is enabled again before the kernel's call
    // below: a handler that leaves that call by a jump would leave the thread uncancellable.
    const wherry::NotCancelled here;
    for (const auto served : {that_reads, that_changes, that_opens, that_makes_processes, that_rules}) {
      if (const auto result = served(number, words)) return *result;
    }
  }
  return WHERRY_NEXT(syscall, number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
