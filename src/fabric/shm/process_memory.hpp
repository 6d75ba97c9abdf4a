// SPDX-License-Identifier: Apache-2.0
// Reaching memory of the peer's process that it never shared, with one kernel copy (process_vm_readv and _writev). The
// kernel allows it to processes that may debug each other: the same user, and no hardening in between (Yama's
// ptrace_scope, a container's seccomp filter or other process namespace). Where it refuses, the answer is "no".
//
// The kernel knows processes by numbers, and numbers are used again; a process may replace itself by exec; and a
// process that accepts on a listener that it inherited has another number than the kernel vouches for. Memory is
// therefore never written before the peer is recognised: each process shows, in its bell pages, the address of a random
// number in its private memory and the number itself. Only that process, and as long as it is itself, has it there: in
// a forked child the number is gone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/private_memory.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::shm {

/// What this process shows, so that peers recognise it. From any thread.
layout::Recognition recognition();

/// The way to one peer's private memory.
class ShmPrivateMemory final : public PrivateMemory {
 public:
  ShmPrivateMemory(pid_t peer, const layout::Recognition& shown);

  /// For the process that made this object only: what a forked child would ask the peer to reach is not where the peer
  /// would look.
  bool reachable() override;
  /// Asks the kernel again. A "no" is remembered.
  bool recognise() override;
  [[nodiscard]] std::size_t read(std::span<std::byte> destination, std::uint64_t address) override;
  [[nodiscard]] std::size_t write(std::uint64_t address, std::span<const std::byte> source) override;

 private:
  enum class Answer : std::uint8_t { unknown, yes, no };

  const pid_t peer_;
  const layout::Recognition shown_;
  const std::uint64_t owner_;  ///< the number of the process that made this object
  std::atomic<Answer> answer_{Answer::unknown};
};

}  // namespace wherry::fabric::shm
