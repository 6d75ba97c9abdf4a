// SPDX-License-Identifier: Apache-2.0
// Makes other threads wait that store into private memory while its pages are exchanged for others: by userfaultfd,
// which protects pages against writing and lets a thread that writes them sleep in the page fault. (A handler of
// SIGSEGV could do the same, but ends the process if the thread has that signal blocked, as threads of libraries have.)
//
//  - Where a process may handle the faults of the kernel, too, that holds for all stores: also for those of system
//    calls (read into such memory). It may with write permission on /dev/userfaultfd (Linux 6.1), with
//    CAP_SYS_PTRACE, or with vm.unprivileged_userfaultfd=1.
//  - Elsewhere it holds for the stores of programs. A system call that stores meanwhile fails with EFAULT.
//  - Where userfaultfd is refused (seccomp profiles of containers), and before Linux 5.14, no store waits.
//
// What a device writes into pages that the kernel has pinned for it (O_DIRECT, RDMA) passes by all protection.
// May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"

namespace wherry::memory {

class StoreGuard {
 public:
  /// Costs 3 us, and 4 at the end.
  StoreGuard() noexcept;
  /// False: hold() never succeeds.
  [[nodiscard]] bool works() const noexcept { return faults_.valid(); }
  /// EMFILE, ENFILE or ENOMEM: it would work but for that. Otherwise 0.
  [[nodiscard]] int shortage() const noexcept { return shortage_; }
  /// Whether that is so for the stores of system calls, too.
  [[nodiscard]] bool holds_kernel() const noexcept { return holds_kernel_; }

  /// Pages where the kernel and the C library store for the calling thread, whatever it does: its error number, and the
  /// area of its restartable sequences.
  struct Words {
    std::uintptr_t start;
    std::uintptr_t end;
  };
  static Words own_words() noexcept;

  /// From here on a store into these pages waits for release(). Returns 0, or an errno value, and then stores do not
  /// wait: ENOMEM, too many mappings; EBUSY, their faults are handled by another userfaultfd; others where the memory
  /// is neither anonymous nor of a memory file, or own_words() are there. The caller stores nothing there either until
  /// release(), nor does a signal's handler of its thread: it would wait for itself. Costs 3 us, and 0.1 us for each
  /// page; before Linux 6.4 0.6 us more for an untouched one.
  [[nodiscard]] int hold(std::span<const std::byte> pages) const noexcept;
  /// The stores go on, into what is mapped there now.
  void release(std::span<const std::byte> pages) const noexcept;

 private:
  UniqueFd faults_;
  int shortage_ = 0;
  bool holds_kernel_ = false;
  bool marks_ = false;  ///< pages that are not there can be protected, too (Linux 6.4)
};

}  // namespace wherry::memory
