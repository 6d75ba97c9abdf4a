// SPDX-License-Identifier: Apache-2.0
// The application's memory of one request: up to four ranges that act as one.
#pragma once

#include <sys/uio.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "arch/copy.hpp"
#include "arch/shared_copy.hpp"

namespace wherry::mpi {

inline constexpr std::size_t kMostBuffers = 4;

class Buffers {
 public:
  Buffers() = default;
  Buffers(const void* address, std::size_t bytes) : count_(1), bytes_(bytes) {
    ranges_[0] = {const_cast<void*>(address), bytes};
  }
  /// At most kMostBuffers ranges.
  explicit Buffers(std::span<const iovec> ranges);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<const iovec> ranges() const { return {ranges_.data(), count_}; }
  [[nodiscard]] void* first() const { return count_ == 0 ? nullptr : ranges_[0].iov_base; }

  [[nodiscard]] bool is_contiguous() const { return count_ <= 1; }
  /// Returns the bytes from this offset to the end of its range, at most `most`. Empty at the end.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t most) const;
  /// Copies into the buffers from this offset on, and drops what lies beyond their end.
  void scatter(std::uint64_t offset, std::span<const std::byte> from) const {
    if (count_ == 1 && offset <= bytes_ && from.size() <= bytes_ - offset) [[likely]] {
      return arch::copy_out_of_shared(static_cast<std::byte*>(ranges_[0].iov_base) + offset, from.data(), from.size());
    }
    scatter(offset, from, arch::copy_out_of_shared);
  }
  /// Copies all bytes to `to`. The two may overlap.
  void copy_to(const Buffers& to) const;
  /// Copies all bytes to `to`, which has room for bytes().
  void gather(std::byte* to) const {
    for (const iovec& range : ranges()) {
      arch::copy_cached(to, range.iov_base, range.iov_len);
      to += range.iov_len;
    }
  }
  /// Returns a copy of the bytes, in one range. `copy` owns its memory.
  [[nodiscard]] Buffers copied(std::unique_ptr<std::byte[]>& copy) const;
  /// Returns the first `bytes` bytes.
  [[nodiscard]] Buffers shortened(std::uint64_t bytes) const;

 private:
  using Copy = void(void* to, const void* from, std::size_t bytes);
  void scatter(std::uint64_t offset, std::span<const std::byte> from, Copy* copy) const;

  std::array<iovec, kMostBuffers> ranges_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace wherry::mpi
