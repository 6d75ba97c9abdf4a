// SPDX-License-Identifier: Apache-2.0
// Access to memory of the peer's process that was never offered. An optional part of the contract that fabric.hpp
// summarizes. May include: nothing of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::fabric {

/// The private memory of one connection's peer. Thread-safe. Valid as long as the connection.
class PrivateMemory {
 public:
  PrivateMemory() = default;
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  virtual ~PrivateMemory() = default;

  /// Returns whether the kernel lets this process reach the peer's memory. The other functions may be used only then.
  /// The first call costs a system call. The result can change to false at any time.
  virtual bool reachable() = 0;
  /// Returns whether the process that would be reached now is still the peer. It could also be another process with the
  /// same number, or the peer after exec(). Costs a system call. Call it before each write, and only if reachable().
  virtual bool recognise() = 0;
  /// Copies from an address in the peer's address space, which the peer has sent. Blocks for the copy, but not for the
  /// peer's program, which must not change that memory meanwhile. Returns the number of bytes copied, a prefix. It is
  /// smaller if the kernel refuses, if the peer has no memory there, or if the peer is gone.
  [[nodiscard]] virtual std::size_t read(std::span<std::byte> destination, std::uint64_t address) = 0;
  /// Copies to an address in the peer's address space, which the peer has sent. Otherwise like read().
  [[nodiscard]] virtual std::size_t write(std::uint64_t address, std::span<const std::byte> source) = 0;
};

}  // namespace wherry::fabric
