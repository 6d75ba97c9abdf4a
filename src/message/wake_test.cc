// SPDX-License-Identifier: Apache-2.0
// When a subscriber wakes a publisher that sleeps for want of room. The test looks at the bell instead of sleeping.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <deque>

#include <wherry/message.hpp>

#include "message/handshake.hpp"

namespace wherry::message {
namespace {

constexpr std::size_t kPool = 1 << 16;
constexpr std::uint32_t kPlaces = 8;

class MessageWake : public ::testing::Test {
 protected:
  MessageWake() { subscriber_.listen("wherry+inproc://*:*"); }
  ~MessageWake() override {
    held_.clear();
    outlets_.clear();
    slabs_->let_go();
  }

  /// A publisher whose queue is full.
  Outlet& publisher() {
    const auto connecting = fabric_.connect(subscriber_.local(), publishers_offer(pool_));
    subscriber_.admit();
    outlets_.push_back(make_outlet(connecting->try_finish()));
    fill(*outlets_.back(), outlets_.size() - 1);
    return *outlets_.back();
  }
  void fill(Outlet& outlet, std::size_t number) {
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      const auto block = slabs_->take(1);
      *slabs_->start(block) = static_cast<std::byte>(number);
      EXPECT_TRUE(outlet.push(*slabs_, block, 1));
      slabs_->drop(block);
    }
  }
  static void sleeps(Outlet& outlet) { outlet.connection().arm(fabric::Bell::space); }
  static bool rung(Outlet& outlet) {
    pollfd polled{.fd = outlet.connection().descriptor(fabric::Bell::space), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1;
  }
  void take() { ASSERT_TRUE(subscriber_.try_take(held_.emplace_back()).ok()); }
  /// Returns whose it was.
  std::size_t take_and_release() {
    Message message;
    EXPECT_TRUE(subscriber_.try_take(message).ok());
    return message.held() ? static_cast<std::size_t>(message.bytes().front()) : 0;
  }

  fabric::Fabric& fabric_ = fabric::find("inproc");
  std::shared_ptr<memory::SharedMemory> pool_ = fabric_.share(kPool);
  Slabs* const slabs_ = new Slabs(pool_);
  Subscriber subscriber_{{.queue = kPlaces}};
  std::deque<std::unique_ptr<Outlet>> outlets_;
  std::deque<Message> held_;
};

TEST_F(MessageWake, APublisherAloneIsWokenWhenHalfItsQueueIsFree) {
  Outlet& outlet = publisher();
  outlet.want_half();
  sleeps(outlet);
  for (std::uint32_t i = 0; i < kPlaces / 2; ++i) {
    EXPECT_FALSE(rung(outlet)) << i;
    take_and_release();
  }
  EXPECT_TRUE(rung(outlet));
}

TEST_F(MessageWake, WhileOthersHaveMessagesAPublisherIsWokenWhenItsQueueIsEmpty) {
  std::array<Outlet*, 2> outlets{&publisher(), &publisher()};
  for (Outlet* outlet : outlets) {
    outlet->want_half();
    sleeps(*outlet);
  }
  std::array<std::uint32_t, 2> released{};
  while (released[0] < kPlaces && released[1] < kPlaces) {
    const std::size_t whose = take_and_release();
    EXPECT_EQ(rung(*outlets[whose]), ++released[whose] == kPlaces);
  }
  while (released[0] + released[1] < 2 * kPlaces) ++released[take_and_release()];
  EXPECT_TRUE(rung(*outlets[0]) && rung(*outlets[1]));
}

TEST_F(MessageWake, WhoIsAloneAgainIsWokenWhenHalfItsQueueIsFree) {
  Outlet& first = publisher();
  Outlet& second = publisher();
  for (std::uint32_t i = 0; i < 2 * kPlaces; ++i) take_and_release();
  first.finish();
  Message none;
  EXPECT_TRUE(subscriber_.try_take(none).would_block());
  EXPECT_EQ(subscriber_.publishers(), 1U);
  EXPECT_EQ(second.reclaim(*slabs_), kPlaces);
  fill(second, 1);
  second.want_half();
  sleeps(second);
  for (std::uint32_t i = 0; i < kPlaces / 2; ++i) take_and_release();
  EXPECT_TRUE(rung(second));
}

TEST_F(MessageWake, WhoWantsAnyIsWokenByTheFirst) {
  std::array<Outlet*, 2> outlets{&publisher(), &publisher()};
  for (Outlet* outlet : outlets) {
    outlet->want_any();
    sleeps(*outlet);
  }
  const std::size_t whose = take_and_release();
  EXPECT_TRUE(rung(*outlets[whose])) << "while others have messages, too";
  EXPECT_FALSE(rung(*outlets[1 - whose]));
}

TEST_F(MessageWake, ASubscriberThatFindsNothingRingsWhatItOwes) {
  Outlet& outlet = publisher();
  outlet.want_half();
  sleeps(outlet);
  take_and_release();
  for (std::uint32_t i = 1; i < kPlaces; ++i) take();
  EXPECT_FALSE(rung(outlet)) << "it holds the others, and may soon come back for more";
  Message none;
  EXPECT_TRUE(subscriber_.try_take(none).would_block());
  EXPECT_TRUE(rung(outlet));
}

TEST_F(MessageWake, ASubscriberThatLeavesRings) {
  Outlet& outlet = publisher();
  outlet.want_half();
  sleeps(outlet);
  take();
  subscriber_ = Subscriber();
  EXPECT_TRUE(rung(outlet));
}

}  // namespace
}  // namespace wherry::message
