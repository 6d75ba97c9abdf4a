// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/libraries/windowed_link.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace wherry::bench {
namespace {

/// A library whose messages arrive, and whose sends complete, when the test calls for it. The test can access its
/// state.
struct Fake {
  struct Slot {
    std::span<std::byte> buffer;
    bool done = true;
  };
  std::vector<Slot> sends;
  std::vector<Slot> receives;
  std::vector<std::size_t> started;  ///< slots with a send under way, the oldest first
  std::vector<std::size_t> posted;   ///< slots with a receive under way, the oldest first
  std::uint64_t arrived = 0;         ///< messages; each is full of the low byte of its number
  int full = 0;                      ///< how often there is no room

  void complete() {
    sends.at(started.at(0)).done = true;
    started.erase(started.begin());
  }
  void arrive() {
    Slot& slot = receives.at(posted.at(0));
    posted.erase(posted.begin());
    std::memset(slot.buffer.data(), static_cast<int>(arrived++), slot.buffer.size());
    slot.done = true;
  }
};

Fake* fake = nullptr;

class FakeRequests {
 public:
  FakeRequests(const Place& /*place*/, std::size_t slots) {
    fake->sends.resize(slots);
    fake->receives.resize(slots);
  }
  bool start_send(std::size_t slot, std::span<std::byte> message) {
    if (fake->full-- > 0) return false;
    EXPECT_TRUE(fake->sends.at(slot).done) << "two sends in slot " << slot;
    fake->sends.at(slot) = {message, false};
    fake->started.push_back(slot);
    return true;
  }
  bool start_receive(std::size_t slot, std::span<std::byte> buffer) {
    if (fake->full-- > 0) return false;
    fake->receives.at(slot) = {buffer, false};
    fake->posted.push_back(slot);
    return true;
  }
  bool sent(std::size_t slot) { return fake->sends.at(slot).done; }
  bool received(std::size_t slot) { return fake->receives.at(slot).done; }
  [[nodiscard]] std::size_t length(std::size_t slot) const { return fake->receives.at(slot).buffer.size(); }
  bool start_flush() { return fake->full-- <= 0; }
  bool flushed() { return true; }
  void sleep() {}

  /// Completes one send and receives one message, so that every wait ends.
  bool progress() {
    if (!fake->started.empty()) fake->complete();
    if (!fake->posted.empty()) fake->arrive();
    return true;
  }
};

class NoExchangeArea final : public ExchangeArea {
 public:
  void post(std::uint32_t /*rank*/, std::string_view /*bytes*/) override {}
  std::string read(std::uint32_t /*rank*/) override { return {}; }
};

class WindowedLinkTest : public testing::Test {
 protected:
  WindowedLinkTest() {
    fake = &fake_;
    sample_.size = 4096;
    sample_.touched = true;
  }

  WindowedLink<FakeRequests> open(std::uint32_t rank) {
    return WindowedLink<FakeRequests>(Place{sample_, rank, exchange_, "test"});
  }

  Fake fake_;
  Sample sample_;
  NoExchangeArea exchange_;
};

TEST_F(WindowedLinkTest, AMessageStaysAsItIsUntilTheNextReceive) {
  auto receiver = open(0);
  for (int message = 1; message < 500; ++message) {
    const std::span<const std::byte> got = receiver.receive();
    while (!fake_.posted.empty()) fake_.arrive();
    ASSERT_EQ(got.size(), 4096);
    ASSERT_EQ(got.front(), static_cast<std::byte>(message));
    ASSERT_EQ(got.back(), static_cast<std::byte>(message));
  }
}

TEST_F(WindowedLinkTest, ABufferIsNotGivenOutWhileItsSendIsUnderWay) {
  auto sender = open(1);
  for (int message = 0; message < 500; ++message) {
    const std::span<std::byte> buffer = sender.prepare();
    for (const Fake::Slot& slot : fake_.sends) ASSERT_TRUE(slot.done || slot.buffer.data() != buffer.data());
    sender.send();
  }
}

TEST_F(WindowedLinkTest, AWindowOfSendsIsUnderWayAtATime) {
  sample_.touched = false;
  auto sender = open(1);
  for (int message = 0; message < 200; ++message) {
    sender.prepare();
    sender.send();
  }
  EXPECT_EQ(fake_.started.size(), 64);
}

TEST_F(WindowedLinkTest, ASendThatThereIsNoRoomForIsTriedAgain) {
  auto sender = open(1);
  sender.finish();
  fake_.full = 3;
  sender.prepare();
  sender.send();
  EXPECT_EQ(fake_.started.size(), 1);
  EXPECT_LE(fake_.full, 0);
}

TEST_F(WindowedLinkTest, AReceiveThatThereIsNoRoomForIsTriedAgain) {
  fake_.full = 3;
  auto receiver = open(0);
  receiver.receive();
  EXPECT_EQ(fake_.posted.size(), fake_.receives.size());
}

TEST_F(WindowedLinkTest, FinishLeavesNothingUnderWay) {
  auto sender = open(1);
  for (int message = 0; message < 10; ++message) {
    sender.prepare();
    sender.send();
  }
  sender.finish();
  EXPECT_TRUE(fake_.started.empty());
}

TEST(WaitingTest, WhoSharesACoreGivesWay) {
  Sample sample;
  sample.cores = {0, 0};
  EXPECT_EQ(waiting_of(sample), Waiting::yield);
  sample.cores = {0, 1};
  EXPECT_EQ(waiting_of(sample), Waiting::spin);
  sample.senders = 10000;
  EXPECT_EQ(waiting_of(sample), Waiting::yield);
}

}  // namespace
}  // namespace wherry::bench
