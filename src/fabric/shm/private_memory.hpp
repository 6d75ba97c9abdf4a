// SPDX-License-Identifier: Apache-2.0
// Reaching memory of the peer's process that it never shared, with one kernel copy (process_vm_readv and _writev). The
// kernel allows it to processes that may debug each other: the same user, and no hardening in between (Yama's
// ptrace_scope, a container's seccomp filter or other process namespace). Where it refuses, the answer is "no".
//
// The kernel knows processes by numbers, and numbers are used again. Before the first access the peer is therefore
// recognised: each side shows, in its bell page, the address of a random number in its private memory and the number
// itself; only the right process has it there. After that a pidfd tells whether that same process still lives.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::shm {

/// What this side shows, so that the peer recognises it. One per process; from any thread.
layout::Recognition recognition();

/// The way to one peer's private memory. From any thread.
class PrivateMemory {
 public:
  /// @param shown  what the peer shows, in memory that it can change
  PrivateMemory(pid_t peer, const layout::Recognition& shown);
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  ~PrivateMemory();

  /// True if the peer lives and its memory can be reached, by the process that made this object: what a forked child
  /// would ask the peer to reach is not where the peer would look. A few system calls, the first time; later two.
  bool reachable();
  /// As Connection::read_private and write_private, once reachable() was true.
  [[nodiscard]] std::size_t read(std::span<std::byte> destination, std::uint64_t address) const;
  [[nodiscard]] std::size_t write(std::uint64_t address, std::span<const std::byte> source) const;

 private:
  static constexpr int kUnknown = -1;
  static constexpr int kRefused = -2;

  /// A pidfd of the peer, or kRefused.
  [[nodiscard]] int recognise() const;

  pid_t owner_;
  pid_t peer_;
  const layout::Recognition& shown_;
  std::atomic<int> pidfd_{kUnknown};  ///< or kUnknown, kRefused
};

}  // namespace wherry::fabric::shm
