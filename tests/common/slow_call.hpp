// SPDX-License-Identifier: Apache-2.0
// For tests: a kernel in which a system call waits for a long time, as for the host of a virtual machine or for a lock.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <new>

#include "base/unique_fd.hpp"

namespace wherry {

/// madvise of one kind, by this process: each takes so much longer, and is counted. Of a child process's only, for what
/// the kernel was told to do lasts as long as the process. Another process, until the end of the scope, does the
/// waiting.
class SlowAdvice {
 public:
  SlowAdvice(int advice, std::chrono::nanoseconds more) {
    void* const shared = ::mmap(nullptr, sizeof(*count_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return;
    count_ = new (shared) std::atomic<int>{0};
    const UniqueFd calls = listen(advice);
    if (calls.get() < 0) return;
    const pid_t parent = ::getpid();
    helper_ = ::fork();
    if (helper_ == 0) delay(calls.get(), more, parent);
  }
  SlowAdvice(const SlowAdvice&) = delete;
  SlowAdvice& operator=(const SlowAdvice&) = delete;
  ~SlowAdvice() {
    if (helper_ > 0) {
      ::kill(helper_, SIGKILL);
      ::waitpid(helper_, nullptr, 0);
    }
    if (count_ != nullptr) ::munmap(count_, sizeof(*count_));
  }

  /// False: the kernel has no filters that tell another process.
  [[nodiscard]] bool begun() const { return helper_ > 0; }
  [[nodiscard]] int calls() const { return *count_; }

 private:
  static UniqueFd listen(int advice) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(advice), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {};
    return UniqueFd(
        static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)));
  }

  [[noreturn]] void delay(int calls, std::chrono::nanoseconds more, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const timespec wait{.tv_sec = more.count() / 1'000'000'000, .tv_nsec = more.count() % 1'000'000'000};
    while (true) {
      seccomp_notif call{};
      if (::ioctl(calls, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      ++*count_;
      ::nanosleep(&wait, nullptr);
      seccomp_notif_resp answer{};
      answer.id = call.id;
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      ::ioctl(calls, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

  std::atomic<int>* count_ = nullptr;  ///< in memory of both processes
  pid_t helper_ = -1;
};

}  // namespace wherry
