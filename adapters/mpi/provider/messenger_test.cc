// SPDX-License-Identifier: Apache-2.0
// Two messengers in one process, their mailboxes over the fabric shm.
#include "messenger.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace wherry::mpi {
namespace {

class Log : public Reporter {
 public:
  void sent(const Completion& completion) override { sends.push_back(completion); }
  void received(const Completion& completion) override { receives.push_back(completion); }
  std::deque<Completion> sends;
  std::deque<Completion> receives;
};

class MessengerTest : public testing::Test {
 protected:
  explicit MessengerTest(const MailboxOptions& options = {}, std::size_t most_eager = kMostInjected)
      : a_(at_a_log_, options, job_processors(), most_eager), b_(at_b_log_, options) {
    at_a_ = &a_.link_to(b_.name());
    at_a_->address = 1;
    b_.link_to(a_.name()).address = 7;
    a_.link_to(a_.name()).address = 0;
  }

  // The text is kept until the end of the test.
  SendRequest message(std::string text, std::uint64_t tag = 5) {
    SendRequest request;
    request.to = at_a_;
    const std::string& kept = kept_.emplace_back(std::move(text));
    request.buffers = Buffers(kept.data(), kept.size());
    request.tag = tag;
    request.tagged = true;
    return request;
  }
  static ReceiveRequest into(std::string& buffer, std::uint64_t tag = 5) {
    ReceiveRequest request;
    request.buffers = Buffers(buffer.data(), buffer.size());
    request.tag = tag;
    request.tagged = true;
    request.context = &buffer;
    return request;
  }
  void progress_until(const std::function<bool()>& done) {
    while (!done()) {
      a_.progress();
      b_.progress();
    }
  }
  Completion next_receive() {
    progress_until([&] { return !at_b_log_.receives.empty(); });
    const Completion first = at_b_log_.receives.front();
    at_b_log_.receives.pop_front();
    return first;
  }
  // Until what was sent before has arrived.
  void settle() {
    std::string flag(1, ' ');
    ASSERT_EQ(b_.receive(into(flag, 999)), 0);
    ASSERT_EQ(a_.send(message("x", 999)), 0);
    EXPECT_EQ(next_receive().tag, 999U);
    b_.progress();
  }

  Log at_a_log_, at_b_log_;
  Messenger a_;
  Messenger b_;
  Link* at_a_ = nullptr;
  std::deque<std::string> kept_;
};

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

TEST_F(MessengerTest, ALargeMessageIsCompleteForTheSenderOnceItWasRead) {
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

TEST_F(MessengerTest, AnInjectedMessageDoesNotNeedItsBufferAnyLonger) {
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

TEST_F(MessengerTest, DeliveryIsToldOnlyOnceTheReceiverHasIt) {
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
  text.assign(text.size(), '.');  // the caller's again
  std::string buffer(4096, ' ');
  ASSERT_EQ(b_.receive(into(buffer)), 0);
  next_receive();
  EXPECT_EQ(buffer, std::string(4096, 'S'));
  settle();
  EXPECT_EQ(at_a_log_.sends.size(), 2U);  // the other is of settle()
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

TEST_F(TightMessengerTest, NotMoreThanAMegabyteIsKeptOfMessagesThatAreComplete) {
  const std::string text(4096, 'S');
  at_a_log_.sends.clear();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(a_.send(message(text)), 0);
  EXPECT_EQ(at_a_log_.sends.size(), 256U);
  for (int i = 0; i < 300; ++i) {
    std::string buffer(4096, ' ');
    ASSERT_EQ(b_.receive(into(buffer)), 0);
    next_receive();
    ASSERT_EQ(buffer, text);
  }
  progress_until([&] { return at_a_log_.sends.size() == 300; });
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

// 4 KiB of them go round as the payload of all.
class ManyMessages : public MessengerTest {
 protected:
  SendRequest one_of_many(std::size_t bytes, std::uint64_t tag) {
    SendRequest request = message("", tag);
    request.buffers = Buffers(content_.data(), bytes);
    return request;
  }
  // Sends without any receive posted; returns how many were complete at once, once all had arrived.
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
