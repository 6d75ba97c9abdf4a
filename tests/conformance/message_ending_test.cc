// SPDX-License-Identifier: Apache-2.0
// How publishers and subscribers end, and what outlives them.
#include <cerrno>
#include <optional>
#include <thread>

#include "base/open_descriptors.hpp"
#include "tests/conformance/message_pair.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class MessageEnding : public MessageTest {
 protected:
  void SetUp() override {
    publisher_->listen(address());
    join(*publisher_, *subscriber_);
  }

  std::optional<Publisher> publisher_{PublisherOptions{.pool_bytes = 1 << 16}};
  std::optional<Subscriber> subscriber_{SubscriberOptions{.queue = 8}};
};

TEST_P(MessageEnding, WhatWasPublishedArrivesBeforeTheEndWhichStays) {
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(publish_number(*publisher_, i).ok());
  publisher_.reset();
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(take_number(*subscriber_), i);
  Message message;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(subscriber_->take(message, kTimeout).ended());
  EXPECT_EQ(subscriber_->publishers(), 0U);
}

TEST_P(MessageEnding, ABlockedTakeEndsWithThePublisher) {
  std::thread closing([&] {
    std::this_thread::sleep_for(5ms);
    publisher_.reset();
  });
  Message message;
  EXPECT_TRUE(subscriber_->take(message, kTimeout).ended());
  closing.join();
}

TEST_P(MessageEnding, AMessageOutlivesItsPublisherAndItsSubscriber) {
  publish(*publisher_, pattern_, 10'000);
  Message message;
  ASSERT_TRUE(subscriber_->take(message, kTimeout).ok());
  publisher_.reset();
  Message none;
  EXPECT_TRUE(subscriber_->take(none, kTimeout).ended());
  EXPECT_TRUE(pattern_.matches(message.bytes(), 0));
  subscriber_.reset();
  EXPECT_TRUE(pattern_.matches(message.bytes(), 0));
  Message moved = std::move(message);
  EXPECT_TRUE(pattern_.matches(moved.bytes(), 0));
}

TEST_P(MessageEnding, WhatASubscriberHeldWhenItLeftIsReusedOnlyWhenItIsReleased) {
  publish(*publisher_, pattern_, 1 << 16);
  Message message;
  ASSERT_TRUE(subscriber_->take(message, kTimeout).ok());
  subscriber_.reset();
  EXPECT_EQ(publisher_->subscribers(), 0U);
  Loan loan;
  EXPECT_EQ(publisher_->loan(loan, 1, 5ms).error, ETIMEDOUT);
  EXPECT_TRUE(pattern_.matches(message.bytes(), 0));
  message.release();
  EXPECT_TRUE(publisher_->loan(loan, 1 << 16, kTimeout).ok());
}

TEST_P(MessageEnding, ALoanOutlivesItsPublisher) {
  Loan loan;
  ASSERT_TRUE(publisher_->loan(loan, 10'000).ok());
  publisher_.reset();
  pattern_.fill(loan.bytes(), 0);
  EXPECT_TRUE(pattern_.matches(loan.bytes(), 0));
  Publisher other({.pool_bytes = 4096});
  other.listen(address());
  EXPECT_EQ(other.publish(loan).error, EINVAL);
}

TEST_P(MessageEnding, APublisherThatOnlyConnectsIsToldWhenNobodyIsLeft) {
  Subscriber listening;
  listening.listen(address());
  Publisher publisher({.pool_bytes = 4096});
  publisher.start_connect(listening.local().to_string());
  meet(publisher, listening);
  ASSERT_TRUE(publish_number(publisher, 1).ok());
  {
    const Subscriber gone = std::move(listening);
  }
  EXPECT_EQ(publish_number(publisher, 2).error, EPIPE);
}

TEST_P(MessageEnding, CancellingEndsABlockedTakeAndABlockedPublish) {
  std::thread cancelling([&] {
    std::this_thread::sleep_for(5ms);
    subscriber_->cancel();
    std::this_thread::sleep_for(5ms);
    publisher_->cancel();
  });
  Message message;
  EXPECT_EQ(subscriber_->take(message, kTimeout).error, ECANCELED);
  Result result;
  while ((result = publish_number(*publisher_, 1)).ok()) continue;
  EXPECT_EQ(result.error, ECANCELED);
  cancelling.join();
}

TEST_P(MessageEnding, TheDescriptorOfASubscriberIsReadableWhileThereIsSomethingToTake) {
  const int descriptor = subscriber_->descriptor();
  Message message;
  const auto quieten = [&] { EXPECT_TRUE(subscriber_->try_take(message).would_block()); };
  EXPECT_TRUE(falls_silent(descriptor, quieten));
  for (int round = 0; round < 50; ++round) {
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(publish_number(*publisher_, i).ok());
    for (std::uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(readable(descriptor));
      ASSERT_TRUE(subscriber_->try_take(message).ok());
      EXPECT_EQ(number_in(message), i);
    }
    EXPECT_TRUE(falls_silent(descriptor, quieten));
  }
  publisher_.reset();
  ASSERT_TRUE(readable(descriptor));
  EXPECT_TRUE(subscriber_->try_take(message).ended());
}

TEST_P(MessageEnding, TheDescriptorOfAPublisherTellsWhenAnAttemptMaySucceed) {
  const int descriptor = publisher_->descriptor();
  for (int round = 0; round < 50; ++round) {
    while (try_publish_number(*publisher_, 1).ok()) continue;
    EXPECT_TRUE(falls_silent(descriptor, [&] { EXPECT_TRUE(try_publish_number(*publisher_, 1).would_block()); }));
    ASSERT_EQ(take_number(*subscriber_), 1U);
    ASSERT_TRUE(readable(descriptor));
    ASSERT_TRUE(try_publish_number(*publisher_, 1).ok());
  }
}

TEST_P(MessageEnding, NothingIsLeftOpen) {
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    Subscriber subscriber;
    join(*publisher_, subscriber);
    ASSERT_TRUE(publish_number(*publisher_, 1).ok());
    EXPECT_EQ(take_number(subscriber), 1U);
    EXPECT_EQ(take_number(*subscriber_), 1U);
  }
  publisher_->admit();
  // The publisher's epoll and bell for several subscribers, and the descriptor of the one that stays, are made once.
  EXPECT_LE(open_descriptors(), before + 3);
}

WHERRY_ON_MAPPED_FABRICS(MessageEnding);

}  // namespace
}  // namespace wherry::conformance
