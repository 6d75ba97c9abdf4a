// SPDX-License-Identifier: Apache-2.0
// When a subscriber wakes a publisher that sleeps because it has no room. The test looks at the bell instead of
// sleeping.
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
    connections_.clear();
    slabs_->release();
  }

  /// A publisher whose queue is full.
  PublisherConnection& publisher() {
    const auto connecting = fabric_.connect(subscriber_.local(), publishers_offer(pool_));
    subscriber_.admit();
    connections_.push_back(make_publisher_connection(connecting->try_finish()));
    fill(*connections_.back(), connections_.size() - 1);
    return *connections_.back();
  }
  void fill(PublisherConnection& connection, std::size_t number) {
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      const auto block = slabs_->take(1);
      *slabs_->start(block) = static_cast<std::byte>(number);
      EXPECT_TRUE(connection.push(*slabs_, block, 1));
      slabs_->drop(block);
    }
  }
  static void sleeps(PublisherConnection& connection) { connection.connection().arm(fabric::Bell::space); }
  static bool rung(PublisherConnection& connection) {
    pollfd polled{.fd = connection.connection().descriptor(fabric::Bell::space), .events = POLLIN, .revents = 0};
    return ::poll(&polled, 1, 0) == 1;
  }
  void take() { ASSERT_TRUE(subscriber_.try_take(held_.emplace_back()).ok()); }
  /// Returns which publisher's message it was.
  std::size_t take_and_release() {
    Message message;
    EXPECT_TRUE(subscriber_.try_take(message).ok());
    return message.held() ? static_cast<std::size_t>(message.bytes().front()) : 0;
  }

  fabric::Fabric& fabric_ = fabric::find("inproc");
  std::shared_ptr<memory::SharedMemory> pool_ = fabric_.share(kPool);
  Slabs* const slabs_ = new Slabs(pool_);
  Subscriber subscriber_{{.queue = kPlaces}};
  std::deque<std::unique_ptr<PublisherConnection>> connections_;
  std::deque<Message> held_;
};

TEST_F(MessageWake, APublisherAloneIsWokenWhenHalfItsQueueIsFree) {
  PublisherConnection& connection = publisher();
  connection.want_half();
  sleeps(connection);
  for (std::uint32_t i = 0; i < kPlaces / 2; ++i) {
    EXPECT_FALSE(rung(connection)) << i;
    take_and_release();
  }
  EXPECT_TRUE(rung(connection));
}

TEST_F(MessageWake, WhileOthersHaveMessagesAPublisherIsWokenWhenItsQueueIsEmpty) {
  std::array<PublisherConnection*, 2> connections{&publisher(), &publisher()};
  for (PublisherConnection* connection : connections) {
    connection->want_half();
    sleeps(*connection);
  }
  std::array<std::uint32_t, 2> released{};
  while (released[0] < kPlaces && released[1] < kPlaces) {
    const std::size_t whose = take_and_release();
    EXPECT_EQ(rung(*connections[whose]), ++released[whose] == kPlaces);
  }
  while (released[0] + released[1] < 2 * kPlaces) ++released[take_and_release()];
  EXPECT_TRUE(rung(*connections[0]) && rung(*connections[1]));
}

TEST_F(MessageWake, WhoIsAloneAgainIsWokenWhenHalfItsQueueIsFree) {
  PublisherConnection& first = publisher();
  PublisherConnection& second = publisher();
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
  std::array<PublisherConnection*, 2> connections{&publisher(), &publisher()};
  for (PublisherConnection* connection : connections) {
    connection->want_any();
    sleeps(*connection);
  }
  const std::size_t whose = take_and_release();
  EXPECT_TRUE(rung(*connections[whose])) << "while others have messages, too";
  EXPECT_FALSE(rung(*connections[1 - whose]));
}

TEST_F(MessageWake, ASubscriberThatFindsNothingRingsWhatItOwes) {
  PublisherConnection& connection = publisher();
  connection.want_half();
  sleeps(connection);
  take_and_release();
  for (std::uint32_t i = 1; i < kPlaces; ++i) take();
  EXPECT_FALSE(rung(connection)) << "it holds the others, and may soon come back for more";
  Message none;
  EXPECT_TRUE(subscriber_.try_take(none).would_block());
  EXPECT_TRUE(rung(connection));
}

TEST_F(MessageWake, ASubscriberThatLeavesRings) {
  PublisherConnection& connection = publisher();
  connection.want_half();
  sleeps(connection);
  take();
  subscriber_ = Subscriber();
  EXPECT_TRUE(rung(connection));
}

}  // namespace
}  // namespace wherry::message
