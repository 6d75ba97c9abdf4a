// SPDX-License-Identifier: Apache-2.0
// Memory of the peer's process that was never offered, an optional part of the contract that fabric.hpp sums up.
// May include: nothing of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::fabric {

/// The way to it, of one connection. All calls from any thread, while the connection lives.
class PrivateMemory {
 public:
  PrivateMemory() = default;
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  virtual ~PrivateMemory() = default;

  /// Whether the rest of this may be used: the kernel lets this process reach the peer's memory. Costs a system call
  /// the first time, then nothing; the answer can change to false at any time.
  virtual bool reachable() = 0;
  /// Once that is true: whether the process that would be reached at this moment is the peer, and not another that has
  /// its number, nor a program that it has become. Costs a system call. To be asked before its memory is written.
  virtual bool recognise() = 0;
  /// Copies from where the peer said that its bytes are, in its own addresses. Blocks for the copy, not for the peer's
  /// program, which must keep that memory as it is meanwhile. Returns how many bytes, a prefix; fewer than asked for
  /// when the kernel refuses, the peer has no memory there, or it is gone.
  [[nodiscard]] virtual std::size_t read(std::span<std::byte> destination, std::uint64_t address) = 0;
  /// The other way round: copies to where the peer said that it wants it.
  [[nodiscard]] virtual std::size_t write(std::uint64_t address, std::span<const std::byte> source) = 0;
};

}  // namespace wherry::fabric
