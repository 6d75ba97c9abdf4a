// SPDX-License-Identifier: Apache-2.0
// What a sender was asked to send arrives, even if the sender makes no more calls.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "messenger_pair.hpp"

namespace wherry::mpi {
namespace {

class SenderAway : public MessengerTest {
 protected:
  SendRequest numbered(int number, std::size_t bytes, bool injects) {
    SendRequest request = message(std::string(bytes, static_cast<char>('a' + number % 26)));
    request.inject = injects;
    request.wanted = !injects;
    request.reported = !injects;
    return request;
  }
  void b_receives(int number, std::size_t bytes) {
    std::string buffer(bytes, ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    while (at_b_log_.receives.empty()) b_.progress();
    EXPECT_EQ(at_b_log_.receives.front().error, 0);
    at_b_log_.receives.pop_front();
    EXPECT_EQ(buffer, std::string(bytes, static_cast<char>('a' + number % 26))) << number;
  }
};

TEST_F(SenderAway, SixtyFourMessagesAnd256KiBArriveWithoutIt) {
  settle();
  for (const bool injects : {true, false}) {
    for (const std::size_t bytes : {0, 8, 64, 65, 1000, 4096, 16384}) {
      at_a_log_.sends.clear();
      const int count = static_cast<int>(std::min<std::size_t>(1000, (256 << 10) / std::max<std::size_t>(bytes, 1)));
      for (int i = 0; i < count; ++i) ASSERT_EQ(a_.send(numbered(i, bytes, injects)), 0) << bytes;
      if (!injects) {
        EXPECT_EQ(at_a_log_.sends.size(), static_cast<std::size_t>(count)) << bytes;
      }
      for (int i = 0; i < count; ++i) b_receives(i, bytes);
    }
  }
}

TEST_F(SenderAway, AReceiverThatTakesAPartAndLeavesIsSentAsMuchAgain) {
  settle();
  for (const bool injects : {true, false}) {
    for (const std::size_t bytes : {1000, 4096, 16384}) {
      const int count = static_cast<int>((256 << 10) / bytes);
      int sent = 0;
      int received = 0;
      at_a_log_.sends.clear();
      for (int round = 0; round < 10; ++round) {
        while (sent < received + count) ASSERT_EQ(a_.send(numbered(sent++, bytes, injects)), 0) << bytes;
        if (!injects) {
          EXPECT_EQ(at_a_log_.sends.size(), static_cast<std::size_t>(sent)) << bytes;
        }
        while (received < sent - count / 2) b_receives(received++, bytes);
      }
      while (received < sent) b_receives(received++, bytes);
    }
  }
}

TEST_F(SenderAway, AnInjectedMessageIsRefusedWhereItWouldWait) {
  settle();
  int sent = 0;
  while (a_.send(numbered(sent, 5000, true)) == 0) ++sent;
  EXPECT_GE(sent, 52);  // 256 KiB
  for (int i = 0; i < sent; ++i) b_receives(i, 5000);
  EXPECT_EQ(a_.send(numbered(sent, 5000, true)), 0);
  b_receives(sent, 5000);
}

TEST_F(SenderAway, ASendIsNotCompleteWhileItWaits) {
  settle();
  at_a_log_.sends.clear();
  int sent = 0;
  while (at_a_log_.sends.size() == static_cast<std::size_t>(sent)) ASSERT_EQ(a_.send(numbered(sent++, 5000, false)), 0);
  for (int i = 0; i + 1 < sent; ++i) b_receives(i, 5000);
  EXPECT_EQ(at_a_log_.sends.size() + 1, static_cast<std::size_t>(sent));
  std::string buffer(5000, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  progress_until([&] { return at_a_log_.sends.size() == static_cast<std::size_t>(sent); });
  EXPECT_EQ(next_receive().error, 0);
  EXPECT_EQ(buffer, std::string(5000, static_cast<char>('a' + (sent - 1) % 26)));
}

TEST_F(SenderAway, AnswersOfAReceiverThatLeavesArriveWithoutIt) {
  settle();
  at_a_log_.sends.clear();
  for (int i = 0; i < 64; ++i) {
    SendRequest request = numbered(i, 8, false);
    request.delivery = true;
    ASSERT_EQ(a_.send(request), 0);
  }
  for (int i = 0; i < 64; ++i) b_receives(i, 8);
  while (at_a_log_.sends.size() < 64) a_.progress();
}

class BesideAStream : public MessengerTest {
 protected:
  BesideAStream() : MessengerTest({.budget = std::size_t{1} << 20, .layout = Layout::equal}) {}
};

TEST_F(BesideAStream, AnInjectedMessageDoesNotWaitForItsEnd) {
  settle();
  const std::string text(std::size_t{64} << 20, 'B');
  std::string received(text.size(), ' ');
  std::string after(8, ' ');
  ASSERT_EQ(a_.send(message(text, 1)), 0);
  ASSERT_EQ(b_.receive(into(received, 1)), 0);
  ASSERT_EQ(b_.receive(into(after, 2)), 0);
  for (int i = 0; i < 20; ++i) {
    b_.progress();
    a_.progress();
  }
  SendRequest request = message("12345678", 2);
  request.inject = true;
  request.wanted = request.reported = false;
  while (a_.send(request) == -FI_EAGAIN && at_b_log_.receives.empty()) {
    b_.progress();
    a_.progress();
  }
  progress_until([&] { return !at_b_log_.receives.empty(); });
  EXPECT_EQ(at_b_log_.receives.front().context, &after);
  progress_until([&] { return at_b_log_.receives.size() == 2; });
  EXPECT_EQ(received, text);
}

// The receiver reads a long message from its end on, and ends while a part of it still lies in its section.
TEST(ReceiverEnds, AMessageThatItHasReceivedIsNoFailureOfTheSender) {
  Log at_a;
  Log at_b;
  const MailboxOptions options{.budget = std::size_t{1} << 20, .layout = Layout::equal};
  Messenger a(at_a, options);
  auto b = std::make_unique<Messenger>(at_b, options);
  Link& to = a.link_to(b->name());
  to.address = 1;
  b->link_to(a.name()).address = 7;
  const auto pass_to_section = [&](std::string& text, std::string& buffer) {
    SendRequest request;
    request.to = &to;
    request.buffers = Buffers(text.data(), text.size());
    request.tagged = true;
    ReceiveRequest receive;
    receive.buffers = Buffers(buffer.data(), buffer.size());
    receive.tagged = true;
    ASSERT_EQ(b->receive(receive), 0);
    ASSERT_EQ(a.send(request), 0);
  };
  std::string first("x");
  std::string got(1, ' ');
  pass_to_section(first, got);
  while (at_a.sends.empty() || at_b.receives.empty()) {
    a.progress();
    b->progress();
  }
  at_a.sends.clear();
  at_b.receives.clear();
  std::string text(std::size_t{8} << 20, 'B');
  std::string buffer(text.size(), ' ');
  pass_to_section(text, buffer);
  // The sender was asked for the message, and has filled its section with a part of it.
  while (!b->progress()) a.progress();
  while (a.progress()) continue;
  if (!at_a.sends.empty() || !at_b.receives.empty()) GTEST_SKIP() << "the message took another way";
  while (at_b.receives.empty()) b->progress();
  EXPECT_EQ(at_b.receives.front().error, 0);
  b.reset();
  while (at_a.sends.empty()) a.progress();
  EXPECT_EQ(at_a.sends.front().error, 0);
  EXPECT_EQ(buffer, text);
}

}  // namespace
}  // namespace wherry::mpi
