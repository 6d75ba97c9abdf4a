// SPDX-License-Identifier: Apache-2.0
// Split copies that the sender begins, with an offer.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "stream/split_copy_fixture.hpp"

namespace wherry::stream {
namespace {

using SplitOffer = SplitCopyTest;

TEST_F(SplitOffer, AReceiverTakesAWholeOfferWithoutTheSender) {
  sender_.offer(1000, from_);
  receiver_.invite(900, to_);
  EXPECT_EQ(state(), SplitDeal::offered) << "an offer is not overwritten by an invitation";
  ASSERT_TRUE(receiver_.agreed());
  const Result result = receiver_.take(1000, to_);
  EXPECT_EQ(result.bytes, kBytes);
  expect_received(kBytes);
  ASSERT_TRUE(sender_.answered(1000));
  const auto sent = sender_.conclude(1000, from_);
  ASSERT_TRUE(sent && sent->ok());
  EXPECT_EQ(sent->bytes, kBytes);
  EXPECT_EQ(connection_.writes, 0);
}

TEST_F(SplitOffer, ASenderThatWakesUpInTimeHelpsWithItsOffer) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  bool woken = false;
  connection_.waiter = 1;
  connection_.when_rung = [&] {
    if (std::exchange(woken, true)) return;
    connection_.instead_of_sleeping = [&] { EXPECT_EQ(words().receiver_finished, 0U); };
    connection_.before_read = [&] {
      connection_.before_read = nullptr;
      // The sender takes pieces from the front while the receiver copies its first, from the back.
      words().pieces_taken += 1;
      std::copy_n(from_.begin(), kBytes / 2, to_.begin());
      words().sender_finished = words().deal / 4 * 4;
    };
  };
  EXPECT_EQ(receiver_.take(0, to_).bytes, kBytes);
  EXPECT_TRUE(woken);
  EXPECT_EQ(receivers_ending(), SplitEnding::part) << "it took not all";
}

TEST_F(SplitOffer, AReceiverThatTookNotAllOfAnOfferWaitsForTheSender) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  connection_.before_read = [&] {
    connection_.before_read = nullptr;
    words().pieces_taken += 1;
  };
  EXPECT_EQ(receiver_.take(0, to_).error, ECONNRESET) << "whoever would sleep finds its peer gone";
}

TEST_F(SplitOffer, NothingBeginsBeforeTheSenderHasFinishedWithItsLastOffer) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  ASSERT_EQ(receiver_.take(0, to_).bytes, kBytes);
  const std::uint64_t deal = words().deal;
  receiver_.invite(kBytes, to_);
  EXPECT_EQ(words().deal, deal);
  EXPECT_FALSE(receiver_.agreed());
  ASSERT_EQ(sender_.conclude(0, from_)->bytes, kBytes);
  receiver_.invite(kBytes, to_);
  EXPECT_EQ(state(), SplitDeal::open);
  EXPECT_TRUE(sender_.invited(kBytes));
}

TEST_F(SplitOffer, PiecesOfEarlierTransfersDoNotCount) {
  for (int round = 0; round < 3; ++round) {
    std::fill(to_.begin(), to_.end(), std::byte{0});
    receiver_.invite(0, to_);
    connection_.instead_of_sleeping = [&] { EXPECT_EQ(receiver_.take(0, to_).bytes, kBytes); };
    const auto invited = sender_.send(0, from_);
    connection_.instead_of_sleeping = nullptr;
    ASSERT_TRUE(invited && invited->bytes == kBytes);
    expect_received(kBytes);
    std::fill(to_.begin(), to_.end(), std::byte{0});
    sender_.offer(0, from_);
    receiver_.invite(0, to_);
    EXPECT_EQ(receiver_.take(0, to_).bytes, kBytes);
    expect_received(kBytes);
    EXPECT_EQ(sender_.conclude(0, from_)->bytes, kBytes);
  }
}

TEST_F(SplitOffer, AnOfferThatNobodyTookUpIsWithdrawn) {
  sender_.offer(0, from_);
  EXPECT_FALSE(sender_.answered(0));
  EXPECT_FALSE(sender_.conclude(0, from_).has_value());
  EXPECT_EQ(state(), SplitDeal::closed);
  receiver_.invite(0, to_);
  EXPECT_EQ(state(), SplitDeal::open);
}

TEST_F(SplitOffer, AnOfferWithdrawnAtTheLastMomentIsNotTaken) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  ASSERT_TRUE(receiver_.agreed());
  EXPECT_FALSE(sender_.conclude(0, from_).has_value());
  const Result result = receiver_.take(0, to_);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, 0U);
  expect_received(0);
}

TEST_F(SplitOffer, AnOfferIsTakenAsFarAsThereIsRoom) {
  sender_.offer(0, from_);
  receiver_.invite(0, std::span(to_).first(kBytes / 2));
  EXPECT_EQ(receiver_.take(0, std::span(to_).first(kBytes / 2)).bytes, kBytes / 2);
  EXPECT_EQ(sender_.conclude(0, from_)->bytes, kBytes / 2);
  expect_received(kBytes / 2);
}

TEST_F(SplitOffer, WhoeverBeginsFirstOfTwoIsTheOne) {
  connection_.before_accepting = [&] {
    connection_.before_accepting = nullptr;
    receiver_.invite(0, to_);
  };
  sender_.offer(0, from_);
  EXPECT_EQ(state(), SplitDeal::open);
  EXPECT_TRUE(sender_.answered(0)) << "the offer lost, and the invitation is there";
  EXPECT_FALSE(sender_.conclude(0, from_).has_value());
  EXPECT_EQ(state(), SplitDeal::open);
}

TEST_F(SplitOffer, AnOfferThatDoesNotStandWhereTheRingEndsOrOfNothingBreaksTheRules) {
  for (const std::uint64_t position : {0U, 1U}) {
    SplitReceiver receiver(connection_, receivers_);
    offer(position, position == 0 ? 0 : kBytes);
    receiver.invite(0, to_);
    EXPECT_EQ(receiver.take(0, to_).error, EPROTO);
    EXPECT_EQ(receivers_ending(), SplitEnding::refused);
  }
}

TEST_F(SplitOffer, WhatASenderGaveUpWhileItWasReadIsVoid) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  connection_.before_read = [&] { words().sender_finished = words().deal / 4 * 4 + 1; };
  const Result result = receiver_.take(0, to_);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, 0U);
}

TEST_F(SplitOffer, WhatWasReadOfWhoIsNotThePeerAnyMoreIsVoid) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  connection_.still_recognised = false;
  EXPECT_EQ(receiver_.take(0, to_).error, ECONNRESET);
}

TEST_F(SplitOffer, WhoIsReadIsAskedForAfterTheLastPiece) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  ASSERT_TRUE(connection_.private_memory()->recognise());
  // The peer ends while its memory is read, and another process has its number from the second piece on.
  connection_.before_read = [&, pieces = 0]() mutable { connection_.still_recognised = ++pieces < 2; };
  const Result result = receiver_.take(0, to_);
  EXPECT_EQ(result.error, ECONNRESET);
  EXPECT_EQ(result.bytes, 0U);
  EXPECT_EQ(receivers_ending(), SplitEnding::refused);
}

TEST_F(SplitOffer, AnOfferThatTheKernelRefusesGoesOverTheRing) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  connection_.recognised = false;
  connection_.instead_of_sleeping = [&] { EXPECT_EQ(sender_.conclude(0, from_)->bytes, 0U); };
  const Result result = receiver_.take(0, to_);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes, 0U);
  EXPECT_FALSE(sender_.wants(kBytes));
  EXPECT_FALSE(receiver_.wants(kBytes));
}

TEST_F(SplitOffer, ACancelledSenderWaitsForTheReceiverAndHearsThatAllWasTaken) {
  sender_.offer(0, from_);
  receiver_.invite(0, to_);
  connection_.before_read = [&] {
    connection_.before_read = nullptr;
    senders_.cancelled = true;
  };
  ASSERT_EQ(receiver_.take(0, to_).bytes, kBytes);
  EXPECT_EQ(sender_.conclude(0, from_)->bytes, kBytes);
}

TEST_F(SplitOffer, ASenderReadsNoMoreThanItOfferedWhateverTheReceiverAsksFor) {
  sender_.offer(0, std::span(from_).first(kBytes / 2));
  words().invited_bytes = UINT64_MAX;
  words().invited_address = reinterpret_cast<std::uint64_t>(to_.data());
  words().deal -= 1;
  words().receiver_finished = words().deal / 4 * 4;
  EXPECT_EQ(sender_.conclude(0, std::span(from_).first(kBytes / 2))->bytes, kBytes / 2);
  expect_received(kBytes / 2);
}

}  // namespace
}  // namespace wherry::stream
