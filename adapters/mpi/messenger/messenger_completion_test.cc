// SPDX-License-Identifier: Apache-2.0
// When a send completes, and how much of its payload is kept until then.
#include "messenger_pair.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <string>

namespace wherry::mpi {
namespace {

class MessengerCompletion : public MessengerTest {};

TEST_F(MessengerCompletion, ALargeMessageIsCompleteForTheSenderOnceItWasRead) {
  const std::string large(5 << 20, 'L');
  ASSERT_EQ(a_.send(message(large)), 0);
  settle();
  at_a_log_.sends.pop_back();  // of settle()
  EXPECT_TRUE(at_a_log_.sends.empty());
  std::string buffer(large.size(), ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  EXPECT_EQ(next_receive().bytes, large.size());
  EXPECT_EQ(buffer, large);
  progress_until([&] { return !at_a_log_.sends.empty(); });
}

TEST_F(MessengerCompletion, DeliveryIsToldOnlyOnceTheReceiverHasIt) {
  SendRequest request = message("hello");
  request.delivery = true;
  ASSERT_EQ(a_.send(request), 0);
  settle();
  EXPECT_EQ(at_a_log_.sends.size(), 1U);  // of settle()
  std::string buffer(5, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  progress_until([&] { return at_a_log_.sends.size() == 2; });
  EXPECT_EQ(buffer, "hello");
}

TEST_F(MessengerCompletion, AnInjectedMessageDoesNotNeedItsBufferAnyLonger) {
  std::string text(4096, 'a');
  for (int i = 0; i < 200; ++i) {
    SendRequest request = message("");
    request.buffers = Buffers(text.data(), text.size());
    request.inject = true;
    while (a_.send(request) == -FI_EAGAIN) b_.progress();
    std::fill(text.begin(), text.end(), static_cast<char>('a' + (i + 1) % 26));
  }
  for (int i = 0; i < 200; ++i) {
    std::string buffer(4096, ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    EXPECT_EQ(next_receive().error, 0);
    EXPECT_EQ(buffer, std::string(4096, static_cast<char>('a' + i % 26))) << i;
  }
}

class ShortEager : public MessengerTest {
 protected:
  ShortEager() : MessengerTest({}, 4096) {}
};

TEST_F(ShortEager, WhatIsLongerWaitsForItsReceiverUnlessItIsInjected) {
  const std::string longer(4097, 'L');
  ASSERT_EQ(a_.send(message(std::string(4096, 'S'))), 0);
  settle();
  ASSERT_EQ(at_a_log_.sends.size(), 2U);  // and that of settle()
  ASSERT_EQ(a_.send(message(longer)), 0);
  settle();
  ASSERT_EQ(at_a_log_.sends.size(), 3U);
  SendRequest injected = message(longer);
  injected.inject = true;
  ASSERT_EQ(a_.send(injected), 0);
  for (const char expected : {'S', 'L', 'L'}) {
    std::string buffer(longer.size(), ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    const Completion completion = next_receive();
    EXPECT_EQ(completion.error, 0);
    EXPECT_EQ(buffer.substr(0, completion.bytes), std::string(completion.bytes, expected));
  }
  progress_until([&] { return at_a_log_.sends.size() == 5U; });
}

// Sections of 128 bytes.
class TightMessengerTest : public MessengerTest {
 protected:
  TightMessengerTest() : MessengerTest({.budget = 128}) { settle(); }
};

TEST_F(TightMessengerTest, AShortMessageThatNoSectionHoldsIsCompleteBeforeItsReceiverRuns) {
  std::string text(4096, 'S');
  SendRequest request = message(text);
  request.buffers = Buffers(text.data(), text.size());
  at_a_log_.sends.clear();
  ASSERT_EQ(a_.send(request), 0);
  EXPECT_EQ(at_a_log_.sends.size(), 1U);
  text.assign(text.size(), '.');  // the caller may reuse it
  std::string buffer(4096, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  next_receive();
  EXPECT_EQ(buffer, std::string(4096, 'S'));
  settle();
  EXPECT_EQ(at_a_log_.sends.size(), 2U);  // the other is of settle()
}

TEST_F(TightMessengerTest, OneThatIsCompleteWhenItHasLeftIsNotCompleteBefore) {
  SendRequest request = message(std::string(4096, 'S'));
  request.transmit = true;
  at_a_log_.sends.clear();
  ASSERT_EQ(a_.send(request), 0);
  EXPECT_TRUE(at_a_log_.sends.empty());
  std::string buffer(4096, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  progress_until([&] { return at_a_log_.sends.size() == 1; });
  EXPECT_EQ(buffer, std::string(4096, 'S'));
}

TEST_F(TightMessengerTest, ALongerOneIsCompleteOnceItWasReceived) {
  const std::string text(17 << 10, 'L');
  at_a_log_.sends.clear();
  ASSERT_EQ(a_.send(message(text)), 0);
  settle();
  EXPECT_EQ(at_a_log_.sends.size(), 1U);  // of settle()
  std::string buffer(text.size(), ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  progress_until([&] { return at_a_log_.sends.size() == 2; });
  EXPECT_EQ(buffer, text);
}

TEST_F(TightMessengerTest, NotMoreThan256KiBAreKeptOfMessagesThatAreComplete) {
  const std::string text(4096, 'S');
  at_a_log_.sends.clear();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a_.send(message(text)), 0);
  EXPECT_EQ(at_a_log_.sends.size(), 64U);
  for (int i = 0; i < 100; ++i) {
    std::string buffer(4096, ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    next_receive();
    ASSERT_EQ(buffer, text);
  }
  progress_until([&] { return at_a_log_.sends.size() == 100; });
}

TEST_F(TightMessengerTest, ShortMessagesStayInOrderWhenTheyFindNoRoom) {
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a_.send(message(std::to_string(1000 + i))), 0);
  for (int i = 0; i < 100; ++i) {
    std::string buffer(4, ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    next_receive();
    ASSERT_EQ(buffer, std::to_string(1000 + i));
  }
}

// All messages have the same 4 KiB of payload.
class ManyMessages : public MessengerTest {
 protected:
  SendRequest one_of_many(std::size_t bytes, std::uint64_t tag) {
    SendRequest request = message("", tag);
    request.buffers = Buffers(content_.data(), bytes);
    return request;
  }
  // Sends without a receive posted. Returns how many sends were complete at once, after all messages have arrived.
  std::size_t send_unexpected(std::size_t count, std::size_t bytes, std::uint64_t tag, bool inject = false) {
    for (std::size_t i = 0; i < count; ++i) {
      SendRequest request = one_of_many(bytes, tag);
      request.inject = inject;
      int status = 0;
      while ((status = a_.send(request)) == -FI_EAGAIN) b_.progress();
      EXPECT_EQ(status, 0);
    }
    settle();
    const std::size_t complete = at_a_log_.sends.size() - 1;  // but that of settle()
    at_a_log_.sends.clear();
    return complete;
  }
  void receive_all(std::size_t count, std::size_t bytes, std::uint64_t tag) {
    std::string buffer(bytes, ' ');
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(b_.receive(into(buffer, tag)), 0);
      ASSERT_EQ(next_receive().bytes, bytes);
    }
    EXPECT_EQ(buffer, content_.substr(0, bytes));
  }

  const std::string content_ = std::string(8 << 10, 'c') + std::string(8 << 10, 'd');
};

TEST_F(ManyMessages, StayWithTheirSenderWhileTooManyAreUnexpectedAndAreSentAtOnceAgainAfterwards) {
  constexpr std::size_t kCount = 10'000;
  constexpr std::size_t kBytes = 16 << 10;
  const std::size_t complete = send_unexpected(kCount, kBytes, 1);
  EXPECT_GT(complete, (64U << 20) / kBytes - 100);
  EXPECT_LT(complete, (96U << 20) / kBytes);
  receive_all(kCount, kBytes, 1);
  progress_until([&] { return at_a_log_.sends.size() == kCount - complete; });
  at_a_log_.sends.clear();
  EXPECT_EQ(send_unexpected(100, kBytes, 2), 100U);
}

TEST_F(ManyMessages, OfZeroBytesTakeMemoryToo) {
  constexpr std::size_t kCount = 400'000;
  const std::size_t complete = send_unexpected(kCount, 0, 1);
  EXPECT_LT(complete, kCount);
  receive_all(kCount, 0, 1);
  progress_until([&] { return at_a_log_.sends.size() == kCount - complete; });
}

// MPI_Isend returns, whatever the receiver waits for.
TEST_F(ManyMessages, AreTakenHoweverManyThePeerHasNotReceived) {
  constexpr std::size_t kCount = 100'000;
  for (const bool inject : {false, true}) {
    send_unexpected(kCount, 4096, 1, inject);
    receive_all(kCount, 4096, 1);
    at_a_log_.sends.clear();
  }
}

}  // namespace
}  // namespace wherry::mpi
