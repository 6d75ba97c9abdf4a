// SPDX-License-Identifier: Apache-2.0
// The pages of a ring in its first lap, brought in ahead of its sender. May include: memory, fabric.
//
// A page of shared memory costs 2 to 3 us when it is first written to, which a sender of small messages pays every 4
// KiB. Once it has sent 32 KiB, pages ahead of it are brought in 4 to 32 at a time, after a publication, while the
// receiver has something to do; in rings of 4 MiB and more a huge page at a time, which takes a tenth of the time. What
// is brought in ahead is about what was sent before, 192 KiB and one huge page at most, or a message that is being
// written: an idle ring stays without pages. All of it is done by the sender, because pages count as of the process
// that brings them in (docs/limits.md). After the first lap a comparison is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/huge_pages.hpp"

namespace wherry::stream {

class FirstLap {
 public:
  /// Of no ring: never due.
  FirstLap() = default;
  /// @param ring  all of it that is used, where the sender writes it
  explicit FirstLap(std::span<std::byte> ring);

  /// No more than so much of the ring is to be in use at a time, all of it in turn. Before anything is.
  void limit(std::size_t bytes) { most_ = bytes; }

  /// To be called after each publication of `bytes`, with the sender's position behind them.
  void published(std::uint64_t position, std::size_t bytes) {
    if (position >= due_) [[unlikely]]
      go_ahead(position, bytes);
  }
  /// To be called before `bytes` are written in place at `position`, at the wish of a program that asked for `want`.
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
  std::size_t most_ = 0;        ///< bytes of it that are in use at a time
  std::uint64_t due_ = kNever;  ///< the position from which there is something to do
  std::size_t end_ = 0;         ///< what lies before it is not to be brought in any more
  bool huge_ = false;
};

}  // namespace wherry::stream
