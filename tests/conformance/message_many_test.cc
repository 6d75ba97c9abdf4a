// SPDX-License-Identifier: Apache-2.0
// One to many, many to one, and how they come and go.
#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <set>
#include <thread>

#include "tests/conformance/message_pair.hpp"

namespace wherry::conformance {
namespace {

class MessageMany : public MessageTest {};

constexpr PublisherOptions kSmallPool{.pool_bytes = 1 << 16};

TEST_P(MessageMany, EverySubscriberReceivesEveryMessage) {
  Publisher publisher(kSmallPool);
  publisher.listen(address());
  std::deque<Subscriber> subscribers(5);
  for (auto& subscriber : subscribers) join(publisher, subscriber);
  EXPECT_EQ(publisher.subscribers(), 5U);
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(publish_number(publisher, i).ok());
    for (auto& subscriber : subscribers) EXPECT_EQ(take_number(subscriber), i);
  }
}

TEST_P(MessageMany, AMessageIsUsedAgainOnlyWhenTheLastHasReleasedIt) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen(address());
  std::deque<Subscriber> subscribers(3);
  for (auto& subscriber : subscribers) join(publisher, subscriber);
  publish(publisher, pattern_, 4096);
  std::array<Message, 3> held;
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(subscribers[i].take(held[i], kTimeout).ok());
  Loan loan;
  for (const std::size_t i : {1UL, 0UL}) {
    held[i].release();
    EXPECT_TRUE(publisher.try_loan(loan, 1).would_block());
  }
  EXPECT_TRUE(pattern_.matches(held[2].bytes(), 0));
  held[2].release();
  EXPECT_TRUE(publisher.try_loan(loan, 1).ok());
}

TEST_P(MessageMany, EveryPublisherHasItsTurnHoweverMuchTheOthersPublish) {
  Subscriber subscriber({.queue = 8});
  subscriber.listen(address());
  std::deque<Publisher> publishers;
  for (std::size_t i = 0; i < 4; ++i) {
    publishers.emplace_back(kSmallPool);
    publishers[i].start_connect(subscriber.local().to_string());
    meet(publishers[i], subscriber, 1, i + 1);
  }
  std::array<std::uint64_t, 4> taken{};
  // All queues are always full: without turns the first would be served for ever.
  while (std::ranges::min(taken) < 20) {
    for (std::size_t i = 0; i < 4; ++i) {
      while (try_publish_number(publishers[i], i).ok()) continue;
    }
    const std::uint64_t number = take_number(subscriber);
    ASSERT_LT(number, 4U);
    ++taken[number];
  }
}

TEST_P(MessageMany, ABlockedTakeLetsNewcomersIn) {
  Subscriber subscriber;
  subscriber.listen(address());
  const std::string where = subscriber.local().to_string();
  std::thread publishing([&] {
    for (std::uint64_t i = 0; i < 3; ++i) {
      Publisher publisher(kSmallPool);
      publisher.connect(where, kTimeout);
      EXPECT_TRUE(publish_number(publisher, i).ok());
    }
  });
  std::set<std::uint64_t> taken;
  for (std::uint64_t i = 0; i < 3; ++i) taken.insert(take_number(subscriber));
  EXPECT_EQ(taken, (std::set<std::uint64_t>{0, 1, 2}));
  publishing.join();
}

TEST_P(MessageMany, WhoComesLateReceivesWhatIsPublishedFromThenOn) {
  Publisher publisher(kSmallPool);
  publisher.listen(address());
  EXPECT_TRUE(publish_number(publisher, 0).ok()) << "nobody there: it goes nowhere";
  Subscriber subscriber;
  join(publisher, subscriber);
  EXPECT_TRUE(publish_number(publisher, 1).ok());
  EXPECT_EQ(take_number(subscriber), 1U);
}

TEST_P(MessageMany, WhoLeavesIsLetGoAndItsMessagesAreReclaimed) {
  Publisher publisher({.pool_bytes = 4096});
  publisher.listen(address());
  Subscriber stays;
  join(publisher, stays);
  {
    Subscriber leaves;
    join(publisher, leaves);
    publish(publisher, pattern_, 4096);
    expect_message(stays, pattern_, 4096);
  }
  EXPECT_EQ(publisher.subscribers(), 1U);
  Loan loan;
  EXPECT_TRUE(publisher.loan(loan, 4096, kTimeout).ok());
  loan.release();
  publish(publisher, pattern_, 100, 1);
  expect_message(stays, pattern_, 100, 1);
}

TEST_P(MessageMany, APublisherMayConnectToManySubscribersThatListen) {
  std::deque<Subscriber> subscribers(3);
  Publisher publisher(kSmallPool);
  for (std::size_t i = 0; i < 3; ++i) {
    subscribers[i].listen(address());
    publisher.start_connect(subscribers[i].local().to_string());
    meet(publisher, subscribers[i], i + 1, 1);
  }
  ASSERT_TRUE(publish_number(publisher, 7).ok());
  for (auto& subscriber : subscribers) EXPECT_EQ(take_number(subscriber), 7U);
}

TEST_P(MessageMany, TwoOfOneKindDoNotMeet) {
  Subscriber listening;
  listening.listen(address());
  Subscriber other;
  other.start_connect(listening.local().to_string());
  EXPECT_EQ(error_of([&] {
              for (const auto end = in(kTimeout); std::chrono::steady_clock::now() < *end;) {
                (void)listening.admit();
                (void)other.admit();
              }
            }),
            EPROTO);
  EXPECT_EQ(listening.publishers(), 0U);
}

TEST_P(MessageMany, AStreamAndASubscriberDoNotMeet) {
  Subscriber subscriber;
  subscriber.listen(address());
  Connecting connecting = start_connect(subscriber.local().to_string());
  EXPECT_EQ(error_of([&] {
              for (const auto end = in(kTimeout); std::chrono::steady_clock::now() < *end;) {
                (void)subscriber.admit();
                if (connecting.try_finish()) return;
              }
            }),
            EPROTO);
  EXPECT_EQ(subscriber.publishers(), 0U);
}

TEST_P(MessageMany, WhatCannotBeSetUpSaysWhy) {
  Publisher publisher(kSmallPool);
  Loan loan;
  EXPECT_EQ(publisher.loan(loan, 1).error, ENOTCONN);
  publisher.listen(address());
  EXPECT_EQ(error_of([&] { publisher.listen(address()); }), EINVAL) << "once";
  EXPECT_EQ(error_of([&] { publisher.admit(1, 1ms); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { publisher.connect("wherry+inproc-put://0:1"); }), EINVAL) << "another fabric";
  Subscriber subscriber;
  Message message;
  EXPECT_EQ(subscriber.take(message).error, ENOTCONN);
  EXPECT_EQ(error_of([&] { subscriber.admit(1); }), ENOTCONN);
}

WHERRY_ON_MAPPED_FABRICS(MessageMany);

}  // namespace
}  // namespace wherry::conformance
