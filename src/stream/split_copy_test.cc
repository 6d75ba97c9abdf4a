// SPDX-License-Identifier: Apache-2.0
// The two ends of a split copy over one page, with a fabric that lets a test step in between any two of their steps.
#include "stream/split_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "base/scoped_environment.hpp"
#include "stream/receiver.hpp"

namespace wherry::stream {
namespace {

using layout::SplitDeal;

/// Both ends in one thread: the page is the receiver's segment and what the sender maps; private memory is this
/// process's. Whoever would sleep finds its peer gone.
class OnePage final : public fabric::Connection {
 public:
  OnePage() { open_doors(bells, bells, /*unfenced=*/false); }
  std::span<std::byte> segment() const override { return memory; }
  std::byte* map() const override { return segment().data(); }
  std::size_t remote_bytes() const override { return memory.size(); }
  std::size_t put(std::uint64_t, std::span<const std::byte>) override { return 0; }
  bool get(std::span<std::byte>, std::uint64_t) override { return false; }
  bool reaches_private_memory() override {
    if (before_accepting) before_accepting();
    return true;
  }
  bool recognises_peer() override { return recognised; }
  std::size_t read_private(std::span<std::byte> destination, std::uint64_t address) override {
    if (!recognised) return 0;
    std::memcpy(destination.data(), std::bit_cast<const void*>(address), destination.size());
    return destination.size();
  }
  std::size_t write_private(std::uint64_t address, std::span<const std::byte> source) override {
    ++writes;
    std::memcpy(std::bit_cast<void*>(address), source.data(), source.size());
    return source.size();
  }
  bool signal(std::uint64_t, std::uint64_t, fabric::Bell) override { return false; }
  bool flush() override { return true; }
  void arm(fabric::Bell) override {}
  void disarm(fabric::Bell) override {}
  bool silence(fabric::Bell) override { return false; }
  fabric::Wake wait(fabric::Bell, fabric::Deadline) override {
    if (!instead_of_sleeping) return fabric::Wake::gone;
    instead_of_sleeping();
    return fabric::Wake::rung;
  }
  int descriptor(fabric::Bell) override { return -1; }
  void ring_own(fabric::Bell) override {}
  bool peer_gone() override { return false; }
  const Peer& peer() const override { return peer_; }
  const fabric::Greeting& peer_greeting() const override { return greeting_; }

  alignas(64) mutable std::array<std::byte, 2 * layout::kStreamPageBytes> memory{};  // the page, and a ring
  layout::StreamPage& page = *new (memory.data()) layout::StreamPage{};
  layout::BellPage bells{};
  layout::Word& sleeper = bells.sleepers[1].epoch;  // of the sender, which waits for space
  std::function<void()> when_rung;
  std::function<void()> before_accepting;
  std::function<void()> instead_of_sleeping;
  bool recognised = true;
  int writes = 0;

 protected:
  void ring(fabric::Bell) override {
    if (when_rung) when_rung();
  }

 private:
  Peer peer_;
  fabric::Greeting greeting_{};
};

class SplitCopy : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1'000'000;

  [[nodiscard]] layout::SplitWords& words() { return connection_.page.split; }
  /// What an honest sender stores to accept, all at once.
  void accept(std::uint64_t bytes) {
    words().offered_address = reinterpret_cast<std::uint64_t>(from_.data());
    words().offered_bytes = bytes;
    words().deal += static_cast<std::uint64_t>(SplitDeal::accepted) - static_cast<std::uint64_t>(SplitDeal::open);
  }

  ScopedEnvironment threshold_{"WHERRY_SPLIT", "64K"};
  ScopedEnvironment spin_{"WHERRY_SPIN", "0"};
  OnePage connection_;
  Fate senders_;
  Fate receivers_;
  SplitSender sender_{connection_, senders_};
  SplitReceiver receiver_{connection_, receivers_};
  std::vector<std::byte> from_ = std::vector<std::byte>(kBytes, std::byte{7});
  std::vector<std::byte> to_ = std::vector<std::byte>(kBytes);
};

TEST_F(SplitCopy, WhatStandsInTheRingIsLeftOutOfTheBuffer) {
  receiver_.invite(1000, to_);
  connection_.instead_of_sleeping = [&] { EXPECT_EQ(receiver_.take(std::span(to_).subspan(500)).bytes, kBytes - 500); };
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
  EXPECT_FALSE(receiver_.accepted());
  EXPECT_EQ(connection_.writes, 0);
}

TEST_F(SplitCopy, AnAcceptedInvitationIsNotWithdrawn) {
  receiver_.invite(0, to_);
  accept(kBytes);
  EXPECT_TRUE(receiver_.accepted());
  EXPECT_FALSE(receiver_.withdraw());
}

TEST_F(SplitCopy, OnlyWhatWasInvitedIsSent) {
  receiver_.invite(1000, std::span(to_).first(kBytes / 2));
  for (const std::uint64_t tail : {0U, 999U, 1000U + unsigned{kBytes / 2}, 1000U + unsigned{kBytes / 2} - 100}) {
    EXPECT_FALSE(sender_.send(tail, from_).has_value()) << tail;
  }
  connection_.instead_of_sleeping = [&] { EXPECT_TRUE(receiver_.take(to_).ok()); };
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
    SplitReceiver receiver(connection_, receivers_);
    receiver.invite(0, to_);
    accept(bytes);
    EXPECT_EQ(receiver.take(to_).error, EPROTO);
  }
}

TEST_F(SplitCopy, AWordThatNoRuleAllowsIsNoInvitationAnyMore) {
  receiver_.invite(0, to_);
  words().deal = 12345;
  EXPECT_FALSE(receiver_.accepted());
  EXPECT_TRUE(receiver_.withdraw());
  receiver_.invite(0, to_);
  EXPECT_EQ(words().deal, 12345U) << "nor ever again";
}

TEST_F(SplitCopy, NothingIsWrittenToWhoIsNotThePeer) {
  connection_.recognised = false;
  receiver_.invite(0, to_);
  connection_.instead_of_sleeping = [&] { EXPECT_EQ(receiver_.take(to_).bytes, 0U); };
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
  const Result result = receiver_.take(to_);
  EXPECT_EQ(result.error, ECONNRESET);
  EXPECT_EQ(result.bytes, 0U);
  receiver_.invite(0, to_);
  EXPECT_EQ(words().deal % 4, static_cast<std::uint64_t>(SplitDeal::closed)) << "nobody is invited after a loss";
}

TEST_F(SplitCopy, AReceiveThatHasBytesReturnsThemThoughTheSenderDiesInMidTransfer) {
  constexpr std::size_t kInRing = 3000;  // Enough that credit is returned, and rings.
  connection_.page.tail = kInRing;
  connection_.sleeper = 1;
  connection_.when_rung = [&] {
    words().offered_position = kInRing;
    accept(kBytes / 2);
    connection_.recognised = false;
  };
  layout::StatisticsSlot counters{};
  Receiver receiver(connection_, layout::kStreamPageBytes, receivers_, counters);
  const iovec buffer{to_.data(), to_.size()};
  const Result first = receiver.receive(std::span(&buffer, 1), {});
  EXPECT_TRUE(first.ok()) << first.error;
  EXPECT_EQ(first.bytes, kInRing);
  EXPECT_EQ(receiver.receive(std::span(&buffer, 1), {}).error, ECONNRESET);
}

TEST_F(SplitCopy, AnOfferThatDoesNotStandWhereTheRingEndsBreaksTheStreamForGood) {
  layout::StatisticsSlot counters{};
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
  connection_.instead_of_sleeping = [&] { words().sender_finished = words().deal / 4 * 2; };
  EXPECT_EQ(receiver_.take(to_).bytes, 0U);
  EXPECT_EQ(std::count(to_.begin(), to_.end(), std::byte{7}), 0);
}

}  // namespace
}  // namespace wherry::stream
