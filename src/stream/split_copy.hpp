// SPDX-License-Identifier: Apache-2.0
// Large transfers between the buffers of two blocked calls, past the ring: both sides copy disjoint pieces at once,
// each with one kernel copy, so that two cores work on one message and every byte is copied once. May include: base,
// arch, layout, fabric.
//
//   receiver                                         sender
//   invite: "byte `position` of the ring and what        (sends over the ring what finds no invitation)
//     follows belongs at `address`"; deal: open
//        |                                           sees it open, and its own next byte within:
//        |                                             offer: "at my position, so many bytes at `address`";
//        |                                             deal: accepted (compare-exchange), announce
//   empties the ring up to the offer's position          |
//   both: take the next piece (`claimed`), copy it, until none is left; then say finished, and wait for the other
//
// The positions of the ring do not count these bytes. If the kernel refuses one side a piece, it says so with its
// finished word, and the whole transfer is void for both: it goes over the ring instead, and so does all that follows.
// An invitation that the receiver cannot wait for any longer is withdrawn (compare-exchange); once accepted it is kept.
// Only calls without a timeout take part: a peer that stands still in mid-copy could not be left in time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <wherry/result.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "stream/fate.hpp"
#include "stream/waiter.hpp"

namespace wherry::stream {

/// What the two ends have in common.
class SplitEnd {
 public:
  /// False: all goes over the ring.
  [[nodiscard]] bool wants(std::size_t bytes) const { return threshold_ != 0 && bytes >= threshold_; }
  /// The same for what is left of a buffer that was wanted. Less, so that two sides that began over the ring, because
  /// one came late, find together before the message is over, and are both in time for the next.
  [[nodiscard]] bool wants_rest(std::size_t bytes) const { return threshold_ != 0 && bytes >= threshold_ / 2; }

 protected:
  /// @param words  in the receiving side's page; null where the fabric does not map it
  SplitEnd(fabric::Connection& connection, layout::SplitWords* words, Fate& fate);

  enum class Outcome : std::uint8_t { copied, refused, lost };

  /// Copies pieces of `bytes` until none is left. False: the kernel refused one, or this side was cancelled.
  enum class From : std::uint8_t { front, back };
  template <class CopyPiece>
  bool copy_pieces(std::size_t bytes, From from, CopyPiece&& copy);
  bool stop();
  /// Says that this side has finished, and waits until the peer has.
  Outcome finish(layout::Word& own, const layout::Word& peers, bool refused, fabric::Bell own_bell);
  /// Nothing is split any more on this connection.
  void disable() { threshold_ = 0; }

  fabric::Connection& connection_;
  layout::SplitWords* words_;
  Fate& fate_;
  std::uint64_t number_ = 0;  ///< of the deal

 private:
  bool await(const layout::Word& peers, fabric::Bell bell);

  std::size_t threshold_;
  SpinBudget spin_;
};

class SplitReceiver : public SplitEnd {
 public:
  SplitReceiver(fabric::Connection& connection, Fate& fate);

  /// Invites the sender to put what follows the ring's byte `head` straight into `buffer`, unless that is done already
  /// or not worth it.
  void invite(std::uint64_t head, std::span<std::byte> buffer);
  /// True if the sender has accepted: the ring must be emptied up to position(), then take() called.
  [[nodiscard]] bool accepted() const {
    return open_ && words_->deal.load(std::memory_order_acquire) == deal(layout::SplitDeal::accepted);  // SPLIT-DEAL
  }
  [[nodiscard]] std::uint64_t position() const { return words_->offered_position.load(std::memory_order_relaxed); }
  /// Copies its part of what was offered into `buffer`, which begins where the ring ends. Moved: how many bytes, 0 if
  /// it was refused and comes over the ring. Failed: EPROTO, ECONNRESET, ECANCELED.
  Result take(std::span<std::byte> buffer);
  /// Takes back what was not accepted. False: it was accepted.
  bool withdraw();
  /// For a stream that has failed: ends what was accepted without taking it.
  void abandon();

 private:
  [[nodiscard]] std::uint64_t deal(layout::SplitDeal state) const {
    return 4 * number_ + static_cast<std::uint64_t>(state);
  }
  void close();

  bool open_ = false;
};

class SplitSender : public SplitEnd {
 public:
  SplitSender(fabric::Connection& connection, Fate& fate);

  /// To be called when a large send begins: where the last one was split, waits for the invitation to this one as long
  /// as copying a piece into the ring would take. Who begins over the ring half a microsecond too early pays with the
  /// whole message: the receiver then empties the ring while the sender fills it.
  void hope(std::uint64_t tail);
  /// Whether a large send may wait, asleep, for its invitation: the receiver split the last large message, and such
  /// waits have not lately been in vain. After one in vain 1, 3, 7 ... 63 messages must be split without one.
  [[nodiscard]] bool patient() const { return hopeful_ && splits_to_go_ == 0; }
  /// What came of such a wait.
  void waited(bool found_invitation) {
    if (!found_invitation) hopeful_ = false;
    penalty_ = found_invitation ? 0 : std::min(penalty_ * 2 + 1, kMaxPenalty);
    splits_to_go_ = penalty_;
  }
  /// True if there is an invitation that the byte `tail` falls into.
  [[nodiscard]] bool invited(std::uint64_t tail) const { return invitation(tail).bytes != 0; }
  /// If the receiver has invited the ring's byte `tail`, hands it as much of `bytes` as it invited and returns when
  /// both have copied. Empty: no invitation, or one that is not worth it. Moved: how many bytes, 0 if it was refused.
  std::optional<Result> send(std::uint64_t tail, std::span<const std::byte> bytes);

 private:
  struct Invitation {
    std::uint64_t deal = 0;     ///< the word, open
    std::uint64_t address = 0;  ///< where the byte at `tail` belongs
    std::size_t bytes = 0;      ///< how many from there on; 0: none
  };

  [[nodiscard]] Invitation invitation(std::uint64_t tail) const;

  static constexpr std::uint32_t kMaxPenalty = 63;

  bool hopeful_ = false;
  std::uint32_t penalty_ = 0;
  std::uint32_t splits_to_go_ = 0;
};

}  // namespace wherry::stream
