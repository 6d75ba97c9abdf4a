// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/message_pair.hpp"

#include <stdexcept>

namespace wherry::conformance {

MessageTest::MessageTest() : faults_("WHERRY_FAULTS", std::string(GetParam().faults).c_str()) {}

void meet(Publisher& publisher, Subscriber& subscriber, std::size_t subscribers, std::size_t publishers) {
  for (const auto end = in(kTimeout); std::chrono::steady_clock::now() < *end;) {
    const std::size_t there = publisher.admit();
    if (subscriber.admit() >= publishers && there >= subscribers) return;
  }
  throw std::runtime_error("publisher and subscriber never met");
}

void join(Publisher& publisher, Subscriber& subscriber) {
  const std::size_t before = publisher.subscribers();
  subscriber.start_connect(publisher.local().to_string());
  meet(publisher, subscriber, before + 1, subscriber.publishers() + 1);
}

void publish(Publisher& publisher, const Pattern& pattern, std::size_t bytes, std::uint64_t position) {
  Loan loan;
  ASSERT_EQ(publisher.loan(loan, bytes, kTimeout).bytes, bytes);
  const auto content = pattern.bytes(bytes, position);
  if (bytes != 0) std::memcpy(loan.bytes().data(), content.data(), bytes);
  const Result result = publisher.publish(loan, kTimeout);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_FALSE(loan.held());
}

void expect_message(Subscriber& subscriber, const Pattern& pattern, std::size_t bytes, std::uint64_t position) {
  Message message;
  const Result result = subscriber.take(message, kTimeout);
  ASSERT_TRUE(result.ok()) << result.error;
  ASSERT_EQ(result.bytes, bytes);
  ASSERT_EQ(message.bytes().size(), bytes);
  EXPECT_TRUE(pattern.matches(message.bytes(), position));
}

namespace {

Result write_number(Publisher& publisher, Loan& loan, std::uint64_t number, Timeout timeout) {
  const Result result = publisher.loan(loan, sizeof number, timeout);
  if (result.ok()) std::memcpy(loan.bytes().data(), &number, sizeof number);
  return result;
}

}  // namespace

Result publish_number(Publisher& publisher, std::uint64_t number, Timeout timeout) {
  Loan loan;
  const Result loaned = write_number(publisher, loan, number, timeout);
  return loaned.ok() ? publisher.publish(loan, timeout) : loaned;
}

Result try_publish_number(Publisher& publisher, std::uint64_t number) {
  Loan loan;
  const Result loaned = write_number(publisher, loan, number, std::chrono::nanoseconds(0));
  return loaned.ok() ? publisher.try_publish(loan) : loaned;
}

std::uint64_t number_in(const Message& message) {
  std::uint64_t number = UINT64_MAX;
  if (message.bytes().size() == sizeof number) std::memcpy(&number, message.bytes().data(), sizeof number);
  return number;
}

std::uint64_t take_number(Subscriber& subscriber, Timeout timeout) {
  Message message;
  return subscriber.take(message, timeout).ok() ? number_in(message) : UINT64_MAX;
}

}  // namespace wherry::conformance
