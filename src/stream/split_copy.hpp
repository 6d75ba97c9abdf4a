// SPDX-License-Identifier: Apache-2.0
// Split: transfers large messages between the buffers of two blocked calls, past the ring. Both sides copy disjoint
// pieces at once, each with one kernel copy. So two cores work on one message, and every byte is copied once.
//
// May include: base, arch, layout, fabric.
//
// Either side begins. A waiting receiver invites, and a running sender accepts:
//
//   receiver                                         sender
//   invite: "byte `position` of the ring and what        (sends over the ring what finds no invitation)
//     follows belongs at `address`"; deal: open
//        |                                           sees it open, and its own next byte within:
//        |                                             "`bytes` at `address`, from my position on";
//        |                                             deal: accepted (compare-exchange), announce
//
// A sender that would sleep until the receiver comes makes an offer, so that the receiver need not wait until the
// sender runs again:
//
//   receiver                                         sender
//        |                                           offer: "`bytes` at `address`, from my position on";
//   comes, sees it offered:                            deal: offered (compare-exchange), announce, sleep
//     "the first `bytes` of that belong at `address`";
//     deal: accepted (compare-exchange), announce        |
//
// and from there on
//
//   empties the ring up to the offer's position          |
//   both: take the next piece (`pieces_taken`), copy it, until none is left; then say finished, and wait for the other
//
// The ring's positions do not count these bytes. A receiver that has taken every piece of an offer does not wait for
// the sender, which may not even have woken up; but the next deal waits for the sender's finished word. If the kernel
// refuses one side a piece, that side stores SplitEnding::refused, and the whole transfer is void for both. Its bytes
// go over the ring instead, and so does everything that follows. An invitation or an offer that has waited too long is
// withdrawn (compare-exchange); once accepted it is kept. `pieces_taken` is never reset. Each side reads it before the
// deal is accepted, when no piece can be taken, and counts from there. Only calls without a timeout take part: a call
// could not return in time if its peer stopped in the middle of a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <wherry/result.hpp>

#include "fabric/fabric.hpp"
#include "layout/stream_page.hpp"
#include "stream/connection_state.hpp"
#include "stream/waiter.hpp"

namespace wherry::stream {

/// The common base of both ends.
class SplitEnd {
 public:
  /// Whether a buffer of `bytes` is large enough to split.
  [[nodiscard]] bool wants(std::size_t bytes) const { return threshold_ != 0 && bytes >= threshold_; }
  /// The same for the rest of such a buffer, from half the threshold on. If a message began over the ring because one
  /// side was late, both can still split the rest, and are in time for the next message.
  [[nodiscard]] bool wants_rest(std::size_t bytes) const { return threshold_ != 0 && bytes >= threshold_ / 2; }

 protected:
  /// @param words  in the receiving side's page; null if the fabric does not map it
  SplitEnd(fabric::Connection& connection, layout::SplitWords* words, ConnectionState& connection_state);

  enum class Outcome : std::uint8_t { copied, refused, lost };
  /// The pieces of a transfer that this side copied.
  enum class Share : std::uint8_t { part, refused, all };

  /// Copies pieces of `bytes` until none is left. Refused if the kernel refuses a copy or the stream was cancelled.
  enum class From : std::uint8_t { front, back };
  template <class CopyPiece>
  Share copy_pieces(std::size_t bytes, From from, CopyPiece&& copy);
  Share stop();
  /// Stores this side's finished word and waits for the peer's.
  Outcome finish(layout::Word& own, const layout::Word& peers, Share share, fabric::Bell own_bell);
  [[nodiscard]] bool reaches_peer() const { return private_memory_ != nullptr && private_memory_->reachable(); }
  /// Turns splitting off for the rest of this connection.
  void disable() { threshold_ = 0; }

  [[nodiscard]] static layout::SplitDeal state_of(std::uint64_t deal) {
    return static_cast<layout::SplitDeal>(deal % 4);
  }
  [[nodiscard]] std::uint64_t deal(layout::SplitDeal state) const {
    return 4 * number_ + static_cast<std::uint64_t>(state);
  }
  [[nodiscard]] std::uint64_t ending(layout::SplitEnding how) const {
    return 4 * number_ + static_cast<std::uint64_t>(how);
  }
  [[nodiscard]] bool has_finished(const layout::Word& word) const {
    return word.load(std::memory_order_acquire) / 4 == number_;  // SPLIT-DONE acquire: see finish
  }
  /// Compare-exchange from `seen`, whose transfer is finished on both sides. False: the peer's exchange won.
  bool begin(std::uint64_t seen, layout::SplitDeal state);
  /// Compare-exchange of the deal `seen` to accepted; it is then this side's current deal. False: it was withdrawn.
  bool accept(std::uint64_t seen);
  bool close(layout::SplitDeal state);

  fabric::Connection& connection_;
  fabric::PrivateMemory* const private_memory_;  ///< null: the fabric has none, and nothing is invited or offered
  layout::SplitWords* words_;
  ConnectionState& connection_state_;
  std::uint64_t number_ = 0;  ///< of the current deal
  std::uint64_t base_ = 0;    ///< pieces_taken before the current deal

 private:
  bool await(const layout::Word& peers, fabric::Bell bell);

  std::size_t threshold_;
  SpinBudget spin_;
};

class SplitReceiver : public SplitEnd {
 public:
  SplitReceiver(fabric::Connection& connection, ConnectionState& connection_state);

  /// Invites the sender to copy the bytes that follow the ring's byte `head` straight into `buffer`. Does nothing if an
  /// invitation stands, the buffer is too small, the sender has made an offer, or the sender has not finished the last
  /// deal.
  void invite(std::uint64_t head, std::span<std::byte> buffer);
  /// True if the sender has accepted, or offers: the ring must be emptied, then take() called.
  [[nodiscard]] bool agreed() const;
  /// Copies this side's part of the deal into `buffer`, which belongs at the ring's end, `head`. Moved: how many bytes;
  /// 0 if they come over the ring, because a copy was refused or the offer was withdrawn. Failed: EPROTO, ECONNRESET,
  /// ECANCELED.
  [[nodiscard]] Result take(std::uint64_t head, std::span<std::byte> buffer);
  /// Withdraws the invitation. False: it was accepted already.
  bool withdraw();
  /// For a stream that has failed: ends an accepted transfer without copying.
  void abandon();

 private:
  bool accept_offer(std::span<std::byte> buffer);
  [[nodiscard]] Result take(std::span<std::byte> buffer, std::uint64_t address);
  [[nodiscard]] bool is_offer_intact();

  bool accepts_offers_ = false;  ///< the running call would accept an offer
  bool open_ = false;            ///< an invitation stands, or an accepted deal is not taken yet
  bool by_offer_ = false;
};

class SplitSender : public SplitEnd {
 public:
  SplitSender(fabric::Connection& connection, ConnectionState& connection_state);

  /// Call it when a large send begins. If the last one was split, waits for the invitation as long as copying a piece
  /// into the ring would take. A first piece sent half a microsecond too early sends the whole message over the ring:
  /// the receiver then empties the ring while the sender fills it.
  void wait_for_invitation(std::uint64_t tail);
  /// Whether a large send may offer and sleep: the last large message was split, and recent offers were accepted. After
  /// an offer that expired 1, 3, 7 ... 63 messages must be split without one.
  [[nodiscard]] bool may_offer() const { return expects_invitation_ && splits_to_go_ == 0; }
  /// Whether an invitation covers the byte `tail`.
  [[nodiscard]] bool invited(std::uint64_t tail) const { return invitation(tail).bytes != 0; }
  /// If an invitation covers the ring's byte `tail`, transfers as much of `bytes` as it covers, and returns when both
  /// sides have copied. Empty: there is no invitation, or it is too small. Moved: how many bytes; 0 if a copy was
  /// refused.
  std::optional<Result> send(std::uint64_t tail, std::span<const std::byte> bytes);

  /// Offers `bytes`, which follow the ring's byte `tail`, unless the receiver's invitation came first.
  void offer(std::uint64_t tail, std::span<const std::byte> bytes);
  /// True once the receiver has accepted the offer, or invited the byte `tail`.
  [[nodiscard]] bool answered(std::uint64_t tail) const;
  /// Ends an answered or expired offer: withdraws it, or copies as much as the receiver accepted. Empty: it was not
  /// accepted. Otherwise as send().
  std::optional<Result> conclude(std::uint64_t tail, std::span<const std::byte> bytes);

 private:
  struct Invitation {
    std::uint64_t deal = 0;     ///< the deal word, in state open
    std::uint64_t address = 0;  ///< address for the byte at `tail`
    std::size_t bytes = 0;      ///< bytes from there on; 0: no invitation
  };

  [[nodiscard]] Invitation invitation(std::uint64_t tail) const;
  void store_offered(std::uint64_t tail, std::span<const std::byte> bytes);
  [[nodiscard]] Result copy(std::uint64_t address, std::span<const std::byte> bytes);
  [[nodiscard]] bool all_taken() const;
  void update_penalty(bool found);

  static constexpr std::uint32_t kMaxPenalty = 63;

  bool offering_ = false;
  bool expects_invitation_ = false;
  std::uint32_t penalty_ = 0;
  std::uint32_t splits_to_go_ = 0;
};

}  // namespace wherry::stream
