// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace wherry::file {

/// Memory between a ring and a program's buffer. The program's buffer may be unmapped, or lie in a file that is
/// truncated meanwhile. The kernel copies to and from it, so a bad page causes a failure instead of a signal.
///
/// Allocates only by mmap, since the caller may have interrupted `malloc`. Keeps one unused buffer for the next object.
class BounceBuffer {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  /// Throws std::bad_alloc.
  BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;
  ~BounceBuffer();

  /// @param bytes  up to kBytes
  [[nodiscard]] std::span<std::byte> first(std::size_t bytes) const { return {memory_, bytes}; }
  /// Copies the program's bytes to the beginning. False: some of them are not readable.
  [[nodiscard]] bool fill(std::span<const std::byte> from) const;
  /// Copies the beginning to the program's bytes. False: some of them are not writable.
  [[nodiscard]] bool copy_to(std::span<std::byte> to) const;

 private:
  std::byte* memory_;
};

}  // namespace wherry::file
