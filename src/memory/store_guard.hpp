// SPDX-License-Identifier: Apache-2.0
// Makes stores of other threads into private memory wait while its pages are exchanged. It write-protects the pages by
// userfaultfd, so that a thread that writes them sleeps in the page fault. (A SIGSEGV handler was rejected: the process
// dies if a thread has that signal blocked, as threads of libraries have.)
//
//  - If the process may handle page faults of the kernel, all stores wait, also those of system calls (read into such
//    memory). That takes write permission on /dev/userfaultfd (Linux 6.1), CAP_SYS_PTRACE, or
//    vm.unprivileged_userfaultfd=1.
//  - Otherwise the stores of programs wait. A system call that stores meanwhile fails with EFAULT.
//  - If userfaultfd is refused (seccomp profiles of containers), and before Linux 5.14, no store waits.
//
// Writes of devices into pages that the kernel has pinned (O_DIRECT, RDMA) bypass the protection.
// May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"

namespace wherry::memory {

class StoreGuard {
 public:
  /// The constructor costs 3 us, the destructor 4 us.
  StoreGuard() noexcept;
  /// False: hold() never succeeds.
  [[nodiscard]] bool works() const noexcept { return faults_.valid(); }
  /// EMFILE, ENFILE or ENOMEM: the guard does not work only for lack of that. Otherwise 0.
  [[nodiscard]] int shortage() const noexcept { return shortage_; }
  /// Whether stores of system calls wait, too.
  [[nodiscard]] bool holds_kernel() const noexcept { return holds_kernel_; }

  /// The pages that the kernel and the C library may write for the calling thread at any time: those with errno and its
  /// area of restartable sequences (rseq).
  struct Words {
    std::uintptr_t start;
    std::uintptr_t end;
  };
  static Words own_words() noexcept;

  /// Makes stores into these pages wait until release(). Returns 0 or an errno value; then stores do not wait. ENOMEM:
  /// too many mappings. EBUSY: another userfaultfd handles their faults. EDEADLK: own_words() are there. Others: the
  /// memory is neither anonymous nor of a memory file. Until release(), neither the caller nor a signal handler of its
  /// thread may store there: it would wait for itself. Costs 3 us, and 0.1 us per page; before Linux 6.4 0.6 us more
  /// for each untouched page.
  [[nodiscard]] int hold(std::span<const std::byte> pages) const noexcept;
  /// Lets the stores continue, into the pages that are mapped there now.
  void release(std::span<const std::byte> pages) const noexcept;

 private:
  UniqueFd faults_;
  int shortage_ = 0;
  bool holds_kernel_ = false;
  bool marks_ = false;  ///< the kernel can protect pages that are not present, too (Linux 6.4)
};

}  // namespace wherry::memory
