// SPDX-License-Identifier: Apache-2.0
// What happens when subscribers are slower than their publisher.
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/conformance/message_pair.hpp"

namespace wherry::conformance {
namespace {

class MessageFlow : public MessageTest {
 protected:
  void SetUp() override { publisher_.listen(address()); }

  Publisher publisher_{{.pool_bytes = 1 << 16}};
};

TEST_P(MessageFlow, AFullQueueBlocksThePublisherUntilSomethingIsReleased) {
  Subscriber subscriber({.queue = 4});
  join(publisher_, subscriber);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(try_publish_number(publisher_, i).ok());
  EXPECT_TRUE(try_publish_number(publisher_, 4).would_block());
  Loan loan;
  ASSERT_TRUE(publisher_.loan(loan, 8).ok());
  EXPECT_EQ(publisher_.publish(loan, 1ms).error, ETIMEDOUT);
  EXPECT_TRUE(loan.held()) << "on failure it is kept";
  Message message;
  ASSERT_TRUE(subscriber.take(message, kTimeout).ok());
  EXPECT_TRUE(publisher_.try_publish(loan).would_block()) << "taken is not released";
  message.release();
  EXPECT_TRUE(publisher_.try_publish(loan).ok());
  for (std::uint64_t i = 1; i < 4; ++i) EXPECT_EQ(take_number(subscriber), i) << "nothing was lost";
  EXPECT_EQ(subscriber.dropped(), 0U);
}

TEST_P(MessageFlow, ABlockedPublisherGoesOnWhenTheSubscriberReleases) {
  Subscriber subscriber({.queue = 2});
  join(publisher_, subscriber);
  constexpr std::uint64_t kCount = 2000;
  std::thread taker([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      if (i % 97 == 0) std::this_thread::sleep_for(100us);
      ASSERT_EQ(take_number(subscriber), i);
    }
  });
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(publish_number(publisher_, i).ok());
  taker.join();
}

TEST_P(MessageFlow, ABlockedPublisherGoesOnAlthoughTheSubscriberTakesNoMore) {
  Subscriber subscriber({.queue = 16});
  join(publisher_, subscriber);
  for (std::uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(try_publish_number(publisher_, i).ok());
  std::thread taker([&] {
    std::this_thread::sleep_for(5ms);  // so that the publisher sleeps, most of the time; without, this passes as well
    EXPECT_EQ(take_number(subscriber), 0U);
  });
  Loan loan;
  EXPECT_TRUE(publisher_.loan(loan, 8).ok());
  EXPECT_TRUE(publisher_.publish(loan).ok()) << "one place is free, and the other messages stay where they are";
  taker.join();
}

TEST_P(MessageFlow, WhereTheOldestIsDroppedTheNewestArriveAndTheLossIsCounted) {
  Subscriber subscriber({.queue = 4, .overflow = Overflow::drop_oldest});
  join(publisher_, subscriber);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(try_publish_number(publisher_, i).ok());
  EXPECT_EQ(subscriber.dropped(), 6U);
  for (std::uint64_t i = 6; i < 10; ++i) EXPECT_EQ(take_number(subscriber), i);
  Message none;
  EXPECT_TRUE(subscriber.try_take(none).would_block());
}

TEST_P(MessageFlow, WhereAllAreHeldTheNewMessageIsTheOneDropped) {
  Subscriber subscriber({.queue = 2, .overflow = Overflow::drop_oldest});
  join(publisher_, subscriber);
  std::vector<Message> held(2);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(try_publish_number(publisher_, i).ok());
    ASSERT_TRUE(subscriber.take(held[i], kTimeout).ok());
  }
  ASSERT_TRUE(try_publish_number(publisher_, 2).ok());
  EXPECT_EQ(subscriber.dropped(), 1U);
  EXPECT_EQ(number_in(held[0]), 0U);
  EXPECT_EQ(number_in(held[1]), 1U);
  held[1].release();
  ASSERT_TRUE(try_publish_number(publisher_, 3).ok());
  EXPECT_EQ(take_number(subscriber), 3U);
}

TEST_P(MessageFlow, WhatIsDroppedIsNotLostToThePool) {
  Subscriber subscriber({.queue = 4, .overflow = Overflow::drop_oldest});
  join(publisher_, subscriber);
  for (std::uint64_t i = 0; i < 1000; ++i) publish(publisher_, pattern_, 8192, i);
  EXPECT_EQ(subscriber.dropped(), 996U);
  for (std::uint64_t i = 996; i < 1000; ++i) expect_message(subscriber, pattern_, 8192, i);
  Loan all;
  EXPECT_TRUE(publisher_.try_loan(all, 1 << 16).ok());
}

TEST_P(MessageFlow, ASlowSubscriberThatDropsDoesNotHoldUpTheOthers) {
  Subscriber slow({.queue = 2, .overflow = Overflow::drop_oldest});
  Subscriber steady({.queue = 2});
  join(publisher_, slow);
  join(publisher_, steady);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(try_publish_number(publisher_, i).ok());
    EXPECT_EQ(take_number(steady), i);
  }
  EXPECT_EQ(take_number(slow), 98U);
  EXPECT_EQ(slow.dropped(), 98U);
}

TEST_P(MessageFlow, NobodyHasAMessageBeforeEverybodyCanHaveIt) {
  Subscriber fast({.queue = 8}), slow({.queue = 1});
  join(publisher_, fast);
  join(publisher_, slow);
  ASSERT_TRUE(try_publish_number(publisher_, 0).ok());
  EXPECT_TRUE(try_publish_number(publisher_, 1).would_block());
  EXPECT_EQ(take_number(fast), 0U);
  Message none;
  EXPECT_TRUE(fast.try_take(none).would_block());
  EXPECT_EQ(take_number(slow), 0U);
  EXPECT_TRUE(try_publish_number(publisher_, 1).ok());
}

TEST_P(MessageFlow, APoolInUseBlocksALoanUntilSomethingIsReleased) {
  Subscriber subscriber({.queue = 8});
  join(publisher_, subscriber);
  publish(publisher_, pattern_, 1 << 16);
  Loan loan;
  EXPECT_TRUE(publisher_.try_loan(loan, 1).would_block());
  EXPECT_EQ(publisher_.loan(loan, 1, 1ms).error, ETIMEDOUT);
  std::thread taker([&] { expect_message(subscriber, pattern_, 1 << 16); });
  EXPECT_TRUE(publisher_.loan(loan, 1, kTimeout).ok());
  taker.join();
}

TEST_P(MessageFlow, WhatCanNeverBeLentIsSaidSo) {
  Subscriber subscriber;
  join(publisher_, subscriber);
  Loan first, second;
  EXPECT_EQ(publisher_.loan(first, (1 << 16) + 1).error, EMSGSIZE);
  ASSERT_TRUE(publisher_.loan(first, 1 << 15).ok());
  EXPECT_EQ(publisher_.loan(second, 1 << 16).error, ENOBUFS) << "it would wait for itself";
  EXPECT_TRUE(publisher_.loan(second, 1 << 15).ok());
}

TEST_P(MessageFlow, BlocksOfAllSizesMergeAgain) {
  Subscriber subscriber({.queue = 64});
  join(publisher_, subscriber);
  std::uint64_t position = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t bytes = 1; bytes < 20'000; bytes = bytes * 3 + 1) publish(publisher_, pattern_, bytes, ++position);
    position -= 9;
    for (std::size_t bytes = 1; bytes < 20'000; bytes = bytes * 3 + 1)
      expect_message(subscriber, pattern_, bytes, ++position);
    publish(publisher_, pattern_, 1 << 16);
    expect_message(subscriber, pattern_, 1 << 16);
  }
}

WHERRY_ON_MAPPED_FABRICS(MessageFlow);

TEST(MessageLimits, OptionsThatMakeNoSenseAreRefused) {
  for (const std::size_t queue : {std::size_t{0}, std::size_t{65'537}}) {
    EXPECT_EQ(error_of([&] { const Subscriber subscriber({.queue = queue}); }), EINVAL) << queue;
  }
  EXPECT_EQ(error_of([] { const Publisher publisher({.pool_bytes = (std::size_t{1} << 39) + 1}); }), EINVAL);
  EXPECT_EQ(Publisher({.pool_bytes = 1}).pool_bytes(), 4096U);
  EXPECT_EQ(Publisher({.pool_bytes = 4097}).pool_bytes(), 8192U);
}

TEST(MessageLimits, TheDeepestQueueHoldsWhatItSays) {
  Publisher publisher({.pool_bytes = 1 << 24});
  publisher.listen("wherry+inproc://*:*");
  Subscriber subscriber({.queue = 65'536});
  join(publisher, subscriber);
  for (int lap = 0; lap < 3; ++lap) {
    for (std::uint64_t i = 0; i < 65'536; ++i) ASSERT_TRUE(try_publish_number(publisher, i).ok());
    EXPECT_TRUE(try_publish_number(publisher, 0).would_block());
    for (std::uint64_t i = 0; i < 65'536; ++i) ASSERT_EQ(take_number(subscriber), i);
  }
}

}  // namespace
}  // namespace wherry::conformance
