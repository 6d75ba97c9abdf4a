// SPDX-License-Identifier: Apache-2.0
// Prefaults the pages of a ring during its first lap, ahead of the sender.
//
// May include: memory, fabric.
//
// The first write to a page of shared memory costs 2 to 3 us; a sender of small messages pays that every 4 KiB.
// Prefaulting begins once a sender has sent 32 KiB. It takes 4 to 32 pages ahead of the sender at a time, after a
// publication, while the receiver has something to do. In rings of 4 MiB and more it takes a huge page at a time, which
// costs a tenth of the time. The amount prefaulted is about the amount sent before, at most 192 KiB and one huge page,
// or a message that is being written. So an idle ring has no pages. The sender does all of it, because the kernel
// charges a page to the process that faults it in (docs/limits.md). After the first lap one comparison per message
// remains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/huge_pages.hpp"

namespace wherry::stream {

class FirstLap {
 public:
  /// Without a ring: does nothing.
  FirstLap() = default;
  /// @param ring  the used part of the ring, as the sender maps it
  explicit FirstLap(std::span<std::byte> ring);

  /// Limits how many bytes of the ring are in use at a time, though all of it is used in turn. Call it before the ring
  /// is used.
  void limit(std::size_t bytes) { most_ = bytes; }

  /// Call it after each publication of `bytes`; `position` is the sender's position after them.
  void published(std::uint64_t position, std::size_t bytes) {
    if (position >= due_) [[unlikely]]
      go_ahead(position, bytes);
  }
  /// Call it before `bytes` are written in place at `position`, for a program that asked for `want`.
  void reserved(std::uint64_t position, std::size_t bytes, std::size_t want) {
    if (bytes >= memory::kHugePage && huge_) [[unlikely]]
      prepare(position, bytes, want);
  }

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  void go_ahead(std::uint64_t position, std::size_t bytes);
  void prepare(std::uint64_t position, std::size_t bytes, std::size_t want);
  [[nodiscard]] std::size_t next_huge(std::size_t from) const;
  bool bring_in_huge(std::size_t from, std::size_t bytes);
  [[nodiscard]] bool bring_in_small(std::size_t from, std::size_t to) const;

  std::span<std::byte> ring_;
  std::size_t most_ = 0;        ///< most bytes of the ring in use at a time
  std::uint64_t due_ = kNever;  ///< position of the next step
  std::size_t end_ = 0;         ///< the ring is prefaulted up to here
  bool huge_ = false;
};

}  // namespace wherry::stream
