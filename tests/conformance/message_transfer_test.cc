// SPDX-License-Identifier: Apache-2.0
// What a message is: whole, in order, and read where it was written.
#include <cerrno>
#include <vector>

#include "tests/conformance/message_pair.hpp"

namespace wherry::conformance {
namespace {

class MessageTransfer : public MessageTest {
 protected:
  void SetUp() override {
    publisher_.listen(address());
    join(publisher_, subscriber_);
  }

  Publisher publisher_{{.pool_bytes = 1 << 20}};
  Subscriber subscriber_{{.queue = 8}};
};

TEST_P(MessageTransfer, AMessageOfAnySizeArrivesWhole) {
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 4096UL, 65'537UL, 1UL << 20}) {
    publish(publisher_, pattern_, bytes, bytes);
    expect_message(subscriber_, pattern_, bytes, bytes);
  }
}

TEST_P(MessageTransfer, MessagesArriveInTheOrderOfPublicationEachOnce) {
  for (std::uint64_t number = 0; number < 1000; number += 8) {
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(publish_number(publisher_, number + i).ok());
    for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(take_number(subscriber_), number + i);
  }
  Message none;
  EXPECT_TRUE(subscriber_.try_take(none).would_block());
  EXPECT_FALSE(none.held());
}

TEST_P(MessageTransfer, AMessageIsReadWhereItWasWritten) {
  Loan loan;
  ASSERT_TRUE(publisher_.loan(loan, 100).ok());
  const auto written = loan.bytes();
  ASSERT_TRUE(publisher_.publish(loan).ok());
  Message message;
  ASSERT_TRUE(subscriber_.take(message, kTimeout).ok());
  // Contrary to the rules, to see it: what is written now shows at the reader.
  written[99] = std::byte{1};
  EXPECT_EQ(message.bytes()[99], std::byte{1});
  written[99] = std::byte{2};
  EXPECT_EQ(message.bytes()[99], std::byte{2});
}

TEST_P(MessageTransfer, OnlyTheFirstPartOfALoanMayBePublished) {
  Loan loan;
  ASSERT_TRUE(publisher_.loan(loan, 1000).ok());
  loan.shorten(2000);
  EXPECT_EQ(loan.bytes().size(), 1000U);
  loan.shorten(10);
  pattern_.fill(loan.bytes(), 0);
  ASSERT_EQ(publisher_.publish(loan).bytes, 10U);
  expect_message(subscriber_, pattern_, 10);
}

TEST_P(MessageTransfer, HeldMessagesKeepTheirContentAndAreReleasedInAnyOrder) {
  std::vector<Message> held(6);
  for (std::size_t i = 0; i < held.size(); ++i) {
    publish(publisher_, pattern_, 5000, i);
    ASSERT_TRUE(subscriber_.take(held[i], kTimeout).ok());
  }
  for (const std::size_t i : {3UL, 0UL, 5UL}) held[i].release();
  for (std::size_t i = 10; i < 13; ++i) {
    publish(publisher_, pattern_, 5000, i);
    expect_message(subscriber_, pattern_, 5000, i);
  }
  for (const std::size_t i : {1UL, 2UL, 4UL}) EXPECT_TRUE(pattern_.matches(held[i].bytes(), i));
}

TEST_P(MessageTransfer, WhatWasReleasedIsWrittenAgainBeforeMemoryThatIsNot) {
  Loan loan;
  ASSERT_TRUE(publisher_.loan(loan, 10'000).ok());
  const auto* const first = loan.bytes().data();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(publisher_.publish(loan).ok());
    Message message;
    ASSERT_TRUE(subscriber_.take(message, kTimeout).ok());
    message.release();
    ASSERT_TRUE(publisher_.loan(loan, 10'000).ok());
    EXPECT_EQ(loan.bytes().data(), first);
  }
}

TEST_P(MessageTransfer, ALoanMayBeMovedReplacedAndGivenBack) {
  Loan loan;
  ASSERT_TRUE(publisher_.loan(loan, 1 << 20).ok());
  Loan other = std::move(loan);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is left behind is what is tested
  EXPECT_FALSE(loan.held());
  Loan none;
  EXPECT_EQ(publisher_.try_loan(none, 1).error, ENOBUFS) << "the whole pool is lent";
  EXPECT_EQ(publisher_.publish(loan).error, EINVAL) << "nothing held";
  ASSERT_TRUE(publisher_.loan(other, 1 << 20).ok()) << "what it held was given back";
  other.release();
  EXPECT_TRUE(publisher_.loan(none, 1 << 20).ok());
}

TEST_P(MessageTransfer, ManyLoansMayBeHeldAndPublishedInAnyOrder) {
  std::vector<Loan> loans(5);
  for (std::size_t i = 0; i < loans.size(); ++i) {
    ASSERT_TRUE(publisher_.loan(loans[i], 3000).ok());
    pattern_.fill(loans[i].bytes(), i);
  }
  for (const std::size_t i : {4UL, 1UL, 3UL}) {
    ASSERT_TRUE(publisher_.publish(loans[i]).ok());
    expect_message(subscriber_, pattern_, 3000, i);
  }
}

TEST_P(MessageTransfer, ALoanOfAnotherPublisherIsRefused) {
  Publisher other({.pool_bytes = 1 << 16});
  other.listen(address());
  Loan loan;
  ASSERT_TRUE(other.loan(loan, 10).ok());
  EXPECT_EQ(publisher_.publish(loan).error, EINVAL);
  EXPECT_TRUE(loan.held());
}

WHERRY_ON_MAPPED_FABRICS(MessageTransfer);

class MessageRefused : public MessageTest {
 protected:
  void SetUp() override {
    if (GetParam().maps) GTEST_SKIP() << "has a map";
  }
};

TEST_P(MessageRefused, AFabricThatCannotMapSaysSo) {
  Publisher publisher;
  EXPECT_EQ(error_of([&] { publisher.listen(address()); }), ENOTSUP);
  Subscriber subscriber;
  EXPECT_EQ(error_of([&] { subscriber.listen(address()); }), ENOTSUP);
}

WHERRY_ON_EVERY_FABRIC(MessageRefused);

}  // namespace
}  // namespace wherry::conformance
