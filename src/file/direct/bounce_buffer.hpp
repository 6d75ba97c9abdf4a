// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace wherry::file {

/// Memory between a ring and a program's buffer, which may be unmapped, or lie in a file that is cut meanwhile: the
/// kernel copies to and from it, and such a page is a failure, not a signal.
///
/// Allocates nothing but whole pages by mmap: the caller may have interrupted `malloc`. One that is not in use is kept.
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
  /// Copies the program's bytes to the beginning. False: not all of them can be read.
  [[nodiscard]] bool fill(std::span<const std::byte> from) const;
  /// Copies the beginning to the program's bytes. False: not all of them can be written.
  [[nodiscard]] bool copy_to(std::span<std::byte> to) const;

 private:
  std::byte* memory_;
};

}  // namespace wherry::file
