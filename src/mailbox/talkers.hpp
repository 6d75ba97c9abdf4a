// SPDX-License-Identifier: Apache-2.0
// Which peers are seen to send: what the adaptive layout goes by. Counts bytes, forgets by halves, looks at no clock.
// May include: nothing of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::mailbox {

class Talkers {
 public:
  /// Makes room for peers numbered below `count`. Throws std::bad_alloc.
  void reserve(std::size_t count);
  /// At most so many peers are talkers at a time.
  void limit(std::size_t most) noexcept { most_ = most; }
  /// Bytes of that peer were read. True: a period is over, call end_period().
  bool on_piece(std::uint32_t peer, std::size_t bytes) noexcept {
    Seen& seen = seen_[peer];
    if (!seen.listed) list(peer);
    seen.now += bytes + kPerPiece;
    return ++pieces_ >= period_;
  }
  /// Ends a period. True: other peers are talkers now.
  bool end_period() noexcept;
  void forget(std::uint32_t peer) noexcept;

  [[nodiscard]] bool is_talker(std::uint32_t peer) const noexcept { return seen_[peer].talks; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  struct Seen {
    std::uint64_t now = 0;    ///< in this period
    std::uint64_t score = 0;  ///< before it, halved with each
    bool listed = false;      ///< has a score, or talks
    bool talks = false;
  };

  /// What a piece counts beside its bytes.
  static constexpr std::uint64_t kPerPiece = 64;
  /// Pieces of a period: few at first, so that a layout is found within a few hundred messages,
  /// and many while nothing changes.
  static constexpr std::uint32_t kShortestPeriod = 32;
  static constexpr std::uint32_t kLongestPeriod = 1024;
  /// A peer begins to talk with an eighth of what the greatest talker sends. It ends when others begin, if it sends
  /// less than a thirty-second: the distance keeps a peer in between from coming and going.
  static constexpr std::uint64_t kBegins = 8;
  static constexpr std::uint64_t kEnds = 32;

  void list(std::uint32_t peer) noexcept;
  std::uint64_t age() noexcept;
  [[nodiscard]] bool begins(const Seen& seen, std::uint64_t greatest) const noexcept {
    return !seen.talks && seen.score != 0 && seen.score >= greatest / kBegins;
  }
  std::size_t remove_quiet(std::uint64_t greatest) noexcept;
  std::size_t admit(std::uint64_t greatest) noexcept;

  std::vector<Seen> seen_;
  std::vector<std::uint32_t> listed_;
  std::size_t most_ = SIZE_MAX;
  std::size_t count_ = 0;
  std::uint32_t pieces_ = 0;
  std::uint32_t period_ = kShortestPeriod;
};

}  // namespace wherry::mailbox
