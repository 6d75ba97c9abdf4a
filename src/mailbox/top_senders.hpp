// SPDX-License-Identifier: Apache-2.0
// Finds the peers that send most (top senders), for the adaptive layout. It counts bytes, halves the counts each
// period, and reads no clock.
//
// May include: nothing of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::mailbox {

class TopSenders {
 public:
  /// Reserves memory for peers numbered below `count`. Throws std::bad_alloc.
  void reserve(std::size_t count);
  /// Sets how many peers may be top senders at a time.
  void limit(std::size_t most) noexcept { most_ = most; }
  /// Counts a piece of `bytes` read from a peer. True: the period is over, call end_period().
  bool on_piece(std::uint32_t peer, std::size_t bytes) noexcept {
    Seen& seen = seen_[peer];
    if (!seen.listed) list(peer);
    seen.now += bytes + kPerPiece;
    return ++pieces_ >= period_;
  }
  /// Ends a period. True: the set of top senders has changed.
  bool end_period() noexcept;
  void forget(std::uint32_t peer) noexcept;

  [[nodiscard]] bool is_top_sender(std::uint32_t peer) const noexcept { return seen_[peer].is_top; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  struct Seen {
    std::uint64_t now = 0;    ///< in this period
    std::uint64_t score = 0;  ///< of earlier periods, halved with each period
    bool listed = false;      ///< is in listed_: counted in this period, has a score, or is a top sender
    bool is_top = false;
  };

  /// Bytes that a piece counts beside its own.
  static constexpr std::uint64_t kPerPiece = 64;
  /// Pieces in a period: few at first, so that a layout is found within a few hundred messages; many while nothing
  /// changes.
  static constexpr std::uint32_t kShortestPeriod = 32;
  static constexpr std::uint32_t kLongestPeriod = 1024;
  /// A peer becomes a top sender at an eighth of the greatest score. It stops being one below a thirty-second, and only
  /// when another peer begins. The hysteresis keeps a peer in between from alternating.
  static constexpr std::uint64_t kBegins = 8;
  static constexpr std::uint64_t kEnds = 32;

  void list(std::uint32_t peer) noexcept;
  std::uint64_t age() noexcept;
  [[nodiscard]] bool begins(const Seen& seen, std::uint64_t greatest) const noexcept {
    return !seen.is_top && seen.score != 0 && seen.score >= greatest / kBegins;
  }
  std::size_t demote(std::uint64_t greatest) noexcept;
  std::size_t promote(std::uint64_t greatest) noexcept;

  std::vector<Seen> seen_;
  std::vector<std::uint32_t> listed_;
  std::size_t most_ = SIZE_MAX;
  std::size_t count_ = 0;
  std::uint32_t pieces_ = 0;
  std::uint32_t period_ = kShortestPeriod;
};

}  // namespace wherry::mailbox
