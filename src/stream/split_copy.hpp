// SPDX-License-Identifier: Apache-2.0
// Large transfers between the buffers of two blocked calls, past the ring: both sides copy disjoint pieces at once,
// each with one kernel copy, so that two cores work on one message and every byte is copied once. May include: base,
// arch, layout, fabric.
//
// Either side begins. A receiver that waits invites, and a sender that is awake accepts:
//
//   receiver                                         sender
//   invite: "byte `position` of the ring and what        (sends over the ring what finds no invitation)
//     follows belongs at `address`"; deal: open
//        |                                           sees it open, and its own next byte within:
//        |                                             "at my position, so many bytes at `address`";
//        |                                             deal: accepted (compare-exchange), announce
//
// A sender that would sleep until the receiver comes offers, so that the receiver need not wait until it runs again:
//
//   receiver                                         sender
//        |                                           offer: "at my position, so many bytes at `address`";
//   comes, sees it offered:                            deal: offered (compare-exchange), announce, sleep
//     "of that, so many bytes; they belong at `address`";
//     deal: accepted (compare-exchange), announce        |
//
// and from there on
//
//   empties the ring up to the offer's position          |
//   both: take the next piece (`claimed`), copy it, until none is left; then say finished, and wait for the other
//
// The positions of the ring do not count these bytes. A receiver that has taken every piece of an offer does not wait
// for the sender, which may not even have woken up; but no deal follows before that has said finished too. If the
// kernel refuses one side a piece, it says so with its finished word, and the whole transfer is void for both: it goes
// over the ring instead, and so does all that follows. What an invitation or an offer has waited for too long is
// withdrawn (compare-exchange); once accepted it is kept. Nobody resets `claimed`: each side reads it where nobody can
// take a piece, before the deal is accepted, and counts from there.
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
  /// What this side took of a transfer.
  enum class Share : std::uint8_t { part, refused, all };

  /// Copies pieces of `bytes` until none is left. Refused: by the kernel, or this side was cancelled.
  enum class From : std::uint8_t { front, back };
  template <class CopyPiece>
  Share copy_pieces(std::size_t bytes, From from, CopyPiece&& copy);
  Share stop();
  /// Says that this side has finished, and waits until the peer has.
  Outcome finish(layout::Word& own, const layout::Word& peers, Share share, fabric::Bell own_bell);
  [[nodiscard]] bool reaches_peer() const { return private_memory_ != nullptr && private_memory_->reachable(); }
  /// Nothing is split any more on this connection.
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
  /// From the word `seen`, over whose deal nobody copies any more. False: the peer was first.
  bool begin(std::uint64_t seen, layout::SplitDeal state);
  /// The deal `seen` becomes accepted, and this one. False: it was withdrawn.
  bool accept(std::uint64_t seen);
  bool close(layout::SplitDeal state);

  fabric::Connection& connection_;
  fabric::PrivateMemory* const private_memory_;  ///< null: the fabric has none, and nothing is invited or offered
  layout::SplitWords* words_;
  Fate& fate_;
  std::uint64_t number_ = 0;  ///< of the deal
  std::uint64_t base_ = 0;    ///< what had been claimed before it

 private:
  bool await(const layout::Word& peers, fabric::Bell bell);

  std::size_t threshold_;
  SpinBudget spin_;
};

class SplitReceiver : public SplitEnd {
 public:
  SplitReceiver(fabric::Connection& connection, Fate& fate);

  /// Invites the sender to put what follows the ring's byte `head` straight into `buffer`, unless that is done already,
  /// not worth it, or not the turn: the sender has made an offer, or not yet finished with the last one.
  void invite(std::uint64_t head, std::span<std::byte> buffer);
  /// True if the sender has accepted, or offers: the ring must be emptied, then take() called.
  [[nodiscard]] bool agreed() const;
  /// Copies its part of what is offered into `buffer`, which belongs where the ring ends, at `head`. Moved: how many
  /// bytes, 0 if they come over the ring: it was refused, or the offer withdrawn. Failed: EPROTO, ECONNRESET,
  /// ECANCELED.
  [[nodiscard]] Result take(std::uint64_t head, std::span<std::byte> buffer);
  /// Takes back what was not accepted. False: it was accepted.
  bool withdraw();
  /// For a stream that has failed: ends what was accepted without taking it.
  void abandon();

 private:
  bool take_up(std::span<std::byte> buffer);
  [[nodiscard]] Result take(std::span<std::byte> buffer, std::uint64_t address);
  [[nodiscard]] bool undisturbed();

  bool willing_ = false;  ///< the call that runs would take up an offer
  bool open_ = false;     ///< an invitation stands, or a deal was accepted and is not taken
  bool by_offer_ = false;
};

class SplitSender : public SplitEnd {
 public:
  SplitSender(fabric::Connection& connection, Fate& fate);

  /// To be called when a large send begins: where the last one was split, waits for the invitation to this one as long
  /// as copying a piece into the ring would take. Who begins over the ring half a microsecond too early pays with the
  /// whole message: the receiver then empties the ring while the sender fills it.
  void hope(std::uint64_t tail);
  /// Whether a large send may wait, asleep, for the receiver: that split the last large message, and such
  /// waits have not lately been in vain. After one in vain 1, 3, 7 ... 63 messages must be split without one.
  [[nodiscard]] bool patient() const { return hopeful_ && splits_to_go_ == 0; }
  /// True if there is an invitation that the byte `tail` falls into.
  [[nodiscard]] bool invited(std::uint64_t tail) const { return invitation(tail).bytes != 0; }
  /// If the receiver has invited the ring's byte `tail`, hands it as much of `bytes` as it invited and returns when
  /// both have copied. Empty: no invitation, or one that is not worth it. Moved: how many bytes, 0 if it was refused.
  std::optional<Result> send(std::uint64_t tail, std::span<const std::byte> bytes);

  /// Offers `bytes`, which follow the ring's byte `tail`, unless the receiver has opened a deal.
  void offer(std::uint64_t tail, std::span<const std::byte> bytes);
  /// True once the receiver has taken up the offer, or invited the byte `tail`.
  [[nodiscard]] bool answered(std::uint64_t tail) const;
  /// After an offer that was answered, or waited long enough: withdraws it, or copies what the receiver takes of it.
  /// Empty: it was not taken up. Otherwise as send().
  std::optional<Result> conclude(std::uint64_t tail, std::span<const std::byte> bytes);

 private:
  struct Invitation {
    std::uint64_t deal = 0;     ///< the word, open
    std::uint64_t address = 0;  ///< where the byte at `tail` belongs
    std::size_t bytes = 0;      ///< how many from there on; 0: none
  };

  [[nodiscard]] Invitation invitation(std::uint64_t tail) const;
  void show(std::uint64_t tail, std::span<const std::byte> bytes);
  [[nodiscard]] Result copy(std::uint64_t address, std::span<const std::byte> bytes);
  [[nodiscard]] bool all_taken() const;
  void waited(bool found);

  static constexpr std::uint32_t kMaxPenalty = 63;

  bool offering_ = false;
  bool hopeful_ = false;
  std::uint32_t penalty_ = 0;
  std::uint32_t splits_to_go_ = 0;
};

}  // namespace wherry::stream
