// SPDX-License-Identifier: Apache-2.0
// Split copies that the receiver begins, with an invitation; and tests of what both kinds have in common.
#include <algorithm>
#include <cerrno>

#include "stream/receiver.hpp"
#include "stream/split_copy_fixture.hpp"

namespace wherry::stream {
namespace {

using SplitCopy = SplitCopyTest;

TEST_F(SplitCopy, WhatStandsInTheRingIsLeftOutOfTheBuffer) {
  receiver_.invite(1000, to_);
  connection_.instead_of_sleeping = [&] {
    EXPECT_EQ(receiver_.take(1500, std::span(to_).subspan(500)).bytes, kBytes - 500);
  };
  const auto sent = sender_.send(1500, from_);
  ASSERT_TRUE(sent && sent->ok());
  EXPECT_EQ(sent->bytes, kBytes - 500);
  EXPECT_EQ(to_[499], std::byte{0});
  EXPECT_EQ(std::count(to_.begin() + 500, to_.end(), std::byte{7}), kBytes - 500);
}

TEST_F(SplitCopy, AnInvitationWithdrawnAtTheLastMomentIsNotAccepted) {
  receiver_.invite(0, to_);
  connection_.before_accepting = [&] { EXPECT_TRUE(receiver_.withdraw()); };
  EXPECT_FALSE(sender_.send(0, from_).has_value());
  EXPECT_EQ(connection_.writes, 0);
}

TEST_F(SplitCopy, AnInvitationReplacedAtTheLastMomentIsNotAccepted) {
  receiver_.invite(0, to_);
  connection_.before_accepting = [&] {
    connection_.before_accepting = nullptr;
    EXPECT_TRUE(receiver_.withdraw());
    receiver_.invite(77, to_);
  };
  EXPECT_FALSE(sender_.send(0, from_).has_value());
  EXPECT_FALSE(receiver_.agreed());
  EXPECT_EQ(connection_.writes, 0);
}

TEST_F(SplitCopy, AnAcceptedInvitationIsNotWithdrawn) {
  receiver_.invite(0, to_);
  accept(kBytes);
  EXPECT_TRUE(receiver_.agreed());
  EXPECT_FALSE(receiver_.withdraw());
}

TEST_F(SplitCopy, OnlyWhatWasInvitedIsSent) {
  receiver_.invite(1000, std::span(to_).first(kBytes / 2));
  for (const std::uint64_t tail : {0U, 999U, 1000U + unsigned{kBytes / 2}, 1000U + unsigned{kBytes / 2} - 100}) {
    EXPECT_FALSE(sender_.send(tail, from_).has_value()) << tail;
  }
  connection_.instead_of_sleeping = [&] { EXPECT_TRUE(receiver_.take(1000, to_).ok()); };
  EXPECT_EQ(sender_.send(1000, from_)->bytes, kBytes / 2);
}

TEST_F(SplitCopy, WithoutAnInvitationNothingIsOffered) {
  const ScopedEnvironment smallest("WHERRY_SPLIT", "1");
  SplitSender sender(connection_, senders_);
  EXPECT_FALSE(sender.send(0, from_).has_value());
  EXPECT_EQ(words().deal, 0U);
}

TEST_F(SplitCopy, AnOfferThatDoesNotFitTheBufferBreaksTheRules) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{kBytes + 1}, UINT64_MAX}) {
    words().deal = 0;
    SplitReceiver receiver(connection_, receivers_);
    receiver.invite(0, to_);
    accept(bytes);
    EXPECT_EQ(receiver.take(0, to_).error, EPROTO);
  }
}

TEST_F(SplitCopy, AWordThatNoRuleAllowsIsNoInvitationAnyMore) {
  receiver_.invite(0, to_);
  words().deal = 12345;
  EXPECT_FALSE(receiver_.agreed());
  EXPECT_TRUE(receiver_.withdraw());
  receiver_.invite(0, to_);
  EXPECT_EQ(words().deal, 12345U) << "nor ever again";
}

TEST_F(SplitCopy, NothingIsWrittenToWhoIsNotThePeer) {
  connection_.recognised = false;
  receiver_.invite(0, to_);
  connection_.instead_of_sleeping = [&] { EXPECT_EQ(receiver_.take(0, to_).bytes, 0U); };
  const auto sent = sender_.send(0, from_);
  ASSERT_TRUE(sent && sent->ok());
  EXPECT_EQ(sent->bytes, 0U);
  EXPECT_EQ(connection_.writes, 0);
  EXPECT_FALSE(sender_.wants(kBytes)) << "and all that follows goes over the ring";
}

TEST_F(SplitCopy, ASenderWhoseReceiverIsGoneSentNothing) {
  receiver_.invite(0, to_);
  EXPECT_EQ(sender_.send(0, from_)->error, EPIPE);
}

TEST_F(SplitCopy, AReceiverWhoseSenderIsGoneReceivedNothing) {
  receiver_.invite(0, to_);
  accept(kBytes);
  const Result result = receiver_.take(0, to_);
  EXPECT_EQ(result.error, ECONNRESET);
  EXPECT_EQ(result.bytes, 0U);
  const std::uint64_t deal = words().deal;
  receiver_.invite(0, to_);
  EXPECT_EQ(words().deal, deal) << "nobody is invited after a loss";
}

TEST_F(SplitCopy, AReceiveThatHasBytesReturnsThemThoughTheSenderDiesInMidTransfer) {
  constexpr std::size_t kInRing = 3000;  // enough that the returned credit rings
  connection_.page.tail = kInRing;
  connection_.waiter = 1;
  connection_.when_rung = [&] {
    words().offered_position = kInRing;
    accept(kBytes / 2);
    connection_.recognised = false;
  };
  layout::StatisticsRecord counters{};
  Receiver receiver(connection_, layout::kStreamPageBytes, receivers_, counters);
  const iovec buffer{to_.data(), to_.size()};
  const Result first = receiver.receive(std::span(&buffer, 1), {});
  EXPECT_TRUE(first.ok()) << first.error;
  EXPECT_EQ(first.bytes, kInRing);
  EXPECT_EQ(receiver.receive(std::span(&buffer, 1), {}).error, ECONNRESET);
}

TEST_F(SplitCopy, AnOfferThatDoesNotStandWhereTheRingEndsBreaksTheStreamForGood) {
  layout::StatisticsRecord counters{};
  Receiver receiver(connection_, layout::kStreamPageBytes, receivers_, counters);
  connection_.instead_of_sleeping = [&] {
    connection_.instead_of_sleeping = nullptr;
    words().offered_position = 1;
    accept(kBytes / 2);
  };
  const Result first = receiver.receive_all(to_, {});
  EXPECT_EQ(first.error, EPROTO);
  EXPECT_EQ(first.bytes, 0U);
  connection_.page.tail = 10;
  const iovec buffer{to_.data(), to_.size()};
  EXPECT_EQ(receiver.try_receive(std::span(&buffer, 1)).error, EPROTO);
}

TEST_F(SplitCopy, ACancelledReceiverTakesNoFurtherPiece) {
  receiver_.invite(0, to_);
  accept(kBytes);
  receivers_.cancelled = true;
  connection_.instead_of_sleeping = [&] { words().sender_finished = words().deal / 4 * 4; };
  EXPECT_EQ(receiver_.take(0, to_).bytes, 0U);
  EXPECT_EQ(std::count(to_.begin(), to_.end(), std::byte{7}), 0);
}

}  // namespace
}  // namespace wherry::stream
