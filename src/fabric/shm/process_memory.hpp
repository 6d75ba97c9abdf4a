// SPDX-License-Identifier: Apache-2.0
// Accesses memory that the peer's process never shared, with one kernel copy (process_vm_readv and _writev). The kernel
// allows that for processes that may debug each other: of the same user, and without hardening (Yama's ptrace_scope, a
// container's seccomp filter, another process namespace). If it refuses, reachable() is false.
//
// Problem: a process number may not identify the peer. Numbers are reused, a process may exec() another program, and a
// process that accepts on an inherited listener has a number other than the one that the kernel reports.
// Therefore the peer is recognized before its memory is written. Each process shows, in its bell pages, a random number
// and the address of a word in its private memory that contains this number. Only that process has the number there: it
// is gone after exec(), and the kernel wipes it in a forked child.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/private_memory.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric::shm {

/// Returns what this process shows so that peers recognize it. Thread-safe.
layout::Recognition recognition();

/// The private memory of one peer.
class ShmPrivateMemory final : public PrivateMemory {
 public:
  ShmPrivateMemory(pid_t peer, const layout::Recognition& shown);

  /// False in a forked child of the process that created this object: the peer would look into the parent's memory for
  /// addresses that the child sends.
  bool reachable() override;
  /// Asks the kernel again at each call. After a failure, reachable() stays false.
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
