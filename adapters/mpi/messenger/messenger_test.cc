// SPDX-License-Identifier: Apache-2.0
// Messages from one messenger to another: matching, peeks, cancelling, truncation.
#include "messenger_pair.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <string>

namespace wherry::mpi {
namespace {

TEST_F(MessengerTest, AMessageArrivesInAPostedReceive) {
  std::string buffer(10, '.');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  ASSERT_EQ(a_.send(message("hello")), 0);
  const Completion completion = next_receive();
  EXPECT_EQ(buffer, "hello.....");
  EXPECT_EQ(completion.bytes, 5U);
  EXPECT_EQ(completion.source, 7U);
  EXPECT_EQ(completion.context, &buffer);
  EXPECT_EQ(at_a_log_.sends.size(), 1U);
}

TEST_F(MessengerTest, TheFirstMessagesOfBothMayCross) {
  std::string at_b(5, '.');
  std::string at_a(5, '.');
  ASSERT_EQ(b_.receive(into(at_b)), 0);
  ASSERT_EQ(a_.receive(into(at_a)), 0);
  ASSERT_EQ(a_.send(message("to b.")), 0);
  SendRequest back = message("to a.");
  back.to = &b_.link_to(a_.name());
  ASSERT_EQ(b_.send(back), 0);
  EXPECT_EQ(next_receive().error, 0);
  progress_until([&] { return !at_a_log_.receives.empty(); });
  EXPECT_EQ(at_a_log_.receives.front().error, 0);
  EXPECT_EQ(at_b + at_a, "to b.to a.");
}

TEST_F(MessengerTest, AnEndpointIsNotReachedByTheNameOfOneThatHadItsPortBefore) {
  settle();
  Name former = b_.name();
  ++former.incarnation;
  testing::internal::CaptureStderr();
  EXPECT_EQ(a_.connect(a_.link_to(former)), -FI_ECONNREFUSED);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(former.text()), std::string::npos);
  settle();  // the connection to the other is as good as before
}

TEST_F(MessengerTest, MessagesThatNothingWasPostedForWait) {
  ASSERT_EQ(a_.send(message("one")), 0);
  ASSERT_EQ(a_.send(message("two")), 0);
  settle();
  std::string first(3, ' ');
  std::string second(3, ' ');
  ASSERT_EQ(b_.receive(into(first)), 0);
  ASSERT_EQ(b_.receive(into(second)), 0);
  EXPECT_EQ(next_receive().error, 0);
  EXPECT_EQ(next_receive().error, 0);
  EXPECT_EQ(first + second, "onetwo");
}

TEST_F(MessengerTest, AMessageThatIsTooLongIsTruncatedAndSaid) {
  const std::string large(1 << 20, 'L');
  for (const std::string& text : {std::string("hello"), large}) {
    std::string buffer(3, '.');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    ASSERT_EQ(a_.send(message(text)), 0);
    const Completion completion = next_receive();
    EXPECT_EQ(completion.error, FI_ETRUNC);
    EXPECT_EQ(completion.bytes, 3U);
    EXPECT_EQ(completion.missing, text.size() - 3);
    EXPECT_EQ(buffer, text.substr(0, 3));
    progress_until([&] { return !at_a_log_.sends.empty(); });
    at_a_log_.sends.clear();
  }
}

TEST_F(MessengerTest, ABufferForSeveralMessagesIsGivenBackWithTheLast) {
  b_.set_least_room(4);
  std::string buffer(12, '.');
  ReceiveRequest request = into(buffer);
  request.tagged = false;
  request.several = true;
  ASSERT_EQ(b_.receive(request), 0);
  for (const char* text : {"abcde", "fghij"}) {
    SendRequest part = message(text);
    part.tagged = false;
    ASSERT_EQ(a_.send(part), 0);
  }
  EXPECT_EQ(next_receive().flags & FI_MULTI_RECV, 0U);
  const Completion last = next_receive();
  EXPECT_NE(last.flags & FI_MULTI_RECV, 0U);
  EXPECT_EQ(last.buffer, buffer.data() + 5);
  EXPECT_EQ(buffer, "abcdefghij..");
}

TEST_F(MessengerTest, APeekFindsAMessageAndLeavesIt) {
  std::string nothing;
  ASSERT_EQ(b_.peek(into(nothing), false, false), 0);
  EXPECT_EQ(next_receive().error, FI_ENOMSG);
  ASSERT_EQ(a_.send(message("hello")), 0);
  settle();
  ASSERT_EQ(b_.peek(into(nothing), false, false), 0);
  EXPECT_EQ(next_receive().bytes, 5U);
  std::string buffer(5, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  EXPECT_EQ(next_receive().bytes, 5U);
}

TEST_F(MessengerTest, AClaimedMessageGoesToItsClaim) {
  ASSERT_EQ(a_.send(message("claimed")), 0);
  settle();
  std::string buffer(7, ' ');
  ASSERT_EQ(b_.peek(into(buffer), true, false), 0);
  EXPECT_EQ(next_receive().bytes, 7U);
  std::string other(7, ' ');
  ASSERT_EQ(b_.peek(into(other), false, false), 0);
  EXPECT_EQ(next_receive().error, FI_ENOMSG);
  ASSERT_EQ(b_.receive_claimed(into(buffer)), 0);
  EXPECT_EQ(next_receive().error, 0);
  EXPECT_EQ(buffer, "claimed");
  EXPECT_EQ(b_.receive_claimed(into(buffer)), -FI_EINVAL);
}

TEST_F(MessengerTest, ADiscardedLargeMessageIsCompleteForItsSender) {
  const std::string large(1 << 20, 'L');
  ASSERT_EQ(a_.send(message(large)), 0);
  settle();
  at_a_log_.sends.clear();
  std::string nothing;
  ASSERT_EQ(b_.peek(into(nothing), false, true), 0);
  EXPECT_EQ(next_receive().bytes, large.size());
  progress_until([&] { return !at_a_log_.sends.empty(); });
  EXPECT_EQ(at_a_log_.sends.front().error, 0);
}

TEST_F(MessengerTest, ACancelledReceiveTakesNothing) {
  std::string buffer(5, '.');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  ASSERT_EQ(b_.cancel(&buffer), 0);
  EXPECT_EQ(next_receive().error, FI_ECANCELED);
  EXPECT_EQ(b_.cancel(&buffer), -FI_ENOENT);
  ASSERT_EQ(a_.send(message("hello")), 0);
  settle();
  EXPECT_EQ(buffer, ".....");
}

TEST_F(MessengerTest, AMessageToItselfArrives) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{1} << 20}) {
    const std::string text(bytes, 'S');
    SendRequest request = message(text);
    request.to = &a_.link_to(a_.name());
    ASSERT_EQ(a_.send(request), 0);
    std::string buffer(bytes, ' ');
    ReceiveRequest own = into(buffer);
    own.source = 0;
    ASSERT_EQ(a_.receive(own), 0);
    ASSERT_EQ(at_a_log_.receives.size(), 1U);
    at_a_log_.receives.clear();
    EXPECT_EQ(buffer, text);
    EXPECT_EQ(at_a_log_.sends.size(), 1U);
    at_a_log_.sends.clear();
  }
}

TEST_F(MessengerTest, WhatWaitsForAPeerFailsWhenThatCloses) {
  const std::string large(1 << 20, 'L');
  {
    Log log;
    Messenger gone(log, {});
    SendRequest request = message(large);
    request.to = &a_.link_to(gone.name());
    ASSERT_EQ(a_.send(request), 0);
    for (int i = 0; i < 100; ++i) {
      gone.progress();
      a_.progress();
    }
  }
  progress_until([&] { return !at_a_log_.sends.empty(); });
  EXPECT_EQ(at_a_log_.sends.front().error, FI_ECONNRESET);
  EXPECT_EQ(a_.send(message("hello")), 0);  // others are as before
}

TEST_F(MessengerTest, AMessageToAPeerThatNoLongerListensFailsAtOnce) {
  SendRequest request = message("hello");
  {
    Log log;
    Messenger gone(log, {});
    request.to = &a_.link_to(gone.name());
  }
  EXPECT_EQ(a_.send(request), -FI_ECONNREFUSED);
  EXPECT_EQ(a_.send(message("hello")), 0);  // others are as before
}

}  // namespace
}  // namespace wherry::mpi
