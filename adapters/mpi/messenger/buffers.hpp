// SPDX-License-Identifier: Apache-2.0
// The application's memory of one request: up to four ranges, taken as one.
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
  /// At most kMostBuffers.
  explicit Buffers(std::span<const iovec> ranges);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<const iovec> ranges() const { return {ranges_.data(), count_}; }
  [[nodiscard]] void* first() const { return count_ == 0 ? nullptr : ranges_[0].iov_base; }

  [[nodiscard]] bool is_contiguous() const { return count_ <= 1; }
  /// What lies at this offset without a gap, at most `most` bytes; empty at the end.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t most) const;
  /// Copies into the buffers from this offset on. What is beyond their end is dropped.
  void scatter(std::uint64_t offset, std::span<const std::byte> from) const {
    if (count_ == 1 && offset <= bytes_ && from.size() <= bytes_ - offset) [[likely]] {
      return arch::copy_out_of_shared(static_cast<std::byte*>(ranges_[0].iov_base) + offset, from.data(), from.size());
    }
    scatter(offset, from, arch::copy_out_of_shared);
  }
  /// Copies all of it into others, which may overlap.
  void copy_to(const Buffers& to) const;
  /// Copies out of them, all of it.
  void gather(std::byte* to) const {
    for (const iovec& range : ranges()) {
      arch::copy_cached(to, range.iov_base, range.iov_len);
      to += range.iov_len;
    }
  }
  /// The same bytes in memory that `copy` is given.
  [[nodiscard]] Buffers copied(std::unique_ptr<std::byte[]>& copy) const;
  /// The first bytes of them.
  [[nodiscard]] Buffers shortened(std::uint64_t bytes) const;

 private:
  using Copy = void(void* to, const void* from, std::size_t bytes);
  void scatter(std::uint64_t offset, std::span<const std::byte> from, Copy* copy) const;

  std::array<iovec, kMostBuffers> ranges_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace wherry::mpi
