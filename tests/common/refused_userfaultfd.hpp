// SPDX-License-Identifier: Apache-2.0
// For tests of what happens where the kernel refuses userfaultfd: a thread to which it does, as it does in containers
// (all of it) or to users without privileges (the faults of the kernel). The others of the process are let alone.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace wherry {

enum class Refused : std::uint8_t { nothing, faults_of_the_kernel, all };

/// For the calling thread, from now on. Throws.
inline void refuse_userfaultfd(Refused what) {
  if (what == Refused::nothing) return;
  constexpr unsigned kNew = _IO(0xAA, 0x00);             // on /dev/userfaultfd
  const unsigned wanted = what == Refused::all ? 2 : 1;  // no flags are 2: UFFD_USER_MODE_ONLY is 1
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, wanted, 4, 3),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNew, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(rules), .filter = rules};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error("no seccomp filters here");
  }
}

}  // namespace wherry
