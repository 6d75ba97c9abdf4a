// SPDX-License-Identifier: Apache-2.0
// Long messages between two messengers in one process, through sections that are large enough.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "messenger_pair.hpp"

namespace wherry::mpi {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLane = 512 << 10;
constexpr MailboxOptions kLarge{.budget = kMiB, .layout = Layout::equal, .lane = kLane};
constexpr std::size_t kProcessors = 4;

std::string text_of(std::size_t bytes, unsigned salt) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 131 + i / 4096 + salt) % 251);
  return text;
}

class MessengerStream : public testing::Test {
 protected:
  void SetUp() override {
    pass(a_, b_, text_of(1, 0));
    if (!b_.mailbox().reaches_private_memory(1) && !b_.mailbox().reaches_private_memory(0)) {
      GTEST_SKIP() << "the kernel lets no process read another's memory";
    }
    // The layout gives the whole budget to the only peers.
    progress_until([&] { return incoming(b_, a_) >= kMiB / 2 && incoming(a_, b_) >= kMiB / 2; });
  }
  static std::size_t incoming(Messenger& at, Messenger& from) {
    return at.mailbox().section(at.link_to(from.name()).peer).incoming;
  }
  static void send(Messenger& from, Messenger& to, const Buffers& what) {
    SendRequest request;
    request.to = &from.link_to(to.name());
    request.buffers = what;
    request.tagged = true;
    ASSERT_EQ(from.send(request), 0);
  }
  static void send(Messenger& from, Messenger& to, const std::string& text) {
    send(from, to, Buffers(text.data(), text.size()));
  }
  static void receive(Messenger& at, const Buffers& into) {
    ReceiveRequest request;
    request.buffers = into;
    request.tagged = true;
    ASSERT_EQ(at.receive(request), 0);
  }
  static void receive(Messenger& at, std::string& into) { receive(at, Buffers(into.data(), into.size())); }
  void progress_until(const std::function<bool()>& done) {
    while (!done()) {
      a_.progress();
      b_.progress();
    }
  }
  Log& log_of(const Messenger& messenger) { return &messenger == &a_ ? at_a_ : at_b_; }
  void pass(Messenger& from, Messenger& to, const std::string& text) {
    std::string buffer(text.size(), '.');
    receive(to, buffer);
    send(from, to, text);
    progress_until([&] { return !log_of(to).receives.empty() && !log_of(from).sends.empty(); });
    EXPECT_EQ(log_of(to).receives.front().error, 0);
    EXPECT_EQ(log_of(from).sends.front().error, 0);
    log_of(to).receives.clear();
    log_of(from).sends.clear();
    EXPECT_TRUE(buffer == text) << text.size();
  }
  /// Runs until the announcement has come, and nothing else.
  void match() {
    while (!b_.progress()) a_.progress();
  }
  /// Checks that earlier messages are complete, and that later ones arrive intact.
  void expect_order() {
    progress_until([&] { return !at_a_.sends.empty(); });
    EXPECT_EQ(at_a_.sends.front().error, 0);
    at_a_.sends.clear();
    pass(a_, b_, text_of(100, 1));
    pass(a_, b_, text_of(kMiB, 2));
  }

  Log at_a_, at_b_;
  Messenger a_{at_a_, kLarge, kProcessors};
  std::unique_ptr<Messenger> owned_b_ = std::make_unique<Messenger>(at_b_, kLarge, kProcessors);
  Messenger& b_ = *owned_b_;
};

TEST_F(MessengerStream, ALongMessageIsCopiedByItsSenderToo) {
  const std::string text = text_of(3 * kMiB + 5, 3);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  EXPECT_TRUE(at_b_.receives.empty());
  progress_until([&] { return !at_b_.receives.empty(); });
  EXPECT_EQ(at_b_.receives.front().bytes, text.size());
  EXPECT_TRUE(buffer == text);
  at_b_.receives.clear();
  expect_order();
}

TEST_F(MessengerStream, AShortMessageIsTakenWhileAStreamFillsTheSection) {
  const std::string text = text_of(3 * kMiB + 5, 13);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  for (int i = 0; i < 50; ++i) a_.progress();
  SendRequest injected;
  injected.to = &a_.link_to(b_.name());
  injected.buffers = Buffers(text.data(), 1000);
  injected.inject = true;
  injected.wanted = injected.reported = false;
  EXPECT_EQ(a_.send(injected), 0);
  progress_until([&] { return !at_b_.receives.empty(); });
  EXPECT_TRUE(buffer == text);
  at_b_.receives.clear();
  expect_order();
}

TEST_F(MessengerStream, NobodySleepsWhileAStreamMayStall) {
  const std::string text = text_of(3 * kMiB, 14);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  a_.progress();  // one chunk of several, and then no more: nothing would wake the receiver
  while (!b_.may_sleep()) continue;
  EXPECT_EQ(at_b_.receives.size(), 1U);
  EXPECT_TRUE(buffer == text);
  at_b_.receives.clear();
  expect_order();
}

TEST_F(MessengerStream, AMessageIsSentThoughItsReceiverHasReadTheRestAndGone) {
  const std::string text = text_of(3 * kMiB, 12);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  a_.progress();  // one chunk of several
  while (at_b_.receives.empty()) b_.progress();
  EXPECT_TRUE(buffer == text);
  SendRequest injected;
  injected.to = &a_.link_to(b_.name());
  injected.buffers = Buffers(text.data(), 1);
  injected.inject = true;
  owned_b_.reset();
  (void)a_.send(injected);  // the next chunk goes before it, and finds that the receiver has gone
  const auto is_of_text = [](const Completion& completion) { return (completion.flags & FI_TAGGED) != 0; };
  auto& sends = at_a_.sends;
  while (std::none_of(sends.begin(), sends.end(), is_of_text)) a_.progress();
  EXPECT_EQ(std::find_if(sends.begin(), sends.end(), is_of_text)->error, 0);
}

TEST_F(MessengerStream, AReceiverReadsWhatASenderThatIsAwayDoesNotSend) {
  const std::string text = text_of(3 * kMiB + 5, 4);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  while (at_b_.receives.empty()) b_.progress();
  EXPECT_TRUE(buffer == text);
  EXPECT_TRUE(at_a_.sends.empty());
  at_b_.receives.clear();
  expect_order();
}

TEST_F(MessengerStream, AReceiverReadsTheRestOfWhatASenderHasBegun) {
  const std::string text = text_of(5 * kMiB + 5, 5);
  std::string buffer(text.size(), '.');
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  while (a_.progress()) {
  }
  while (at_b_.receives.empty()) b_.progress();
  EXPECT_TRUE(buffer == text);
  at_b_.receives.clear();
  // The rest of the message is dropped.
  std::fill(buffer.begin(), buffer.end(), '.');
  expect_order();
  EXPECT_EQ(buffer, std::string(text.size(), '.'));
}

TEST_F(MessengerStream, AfterAStallMessagesAreReadForAWhile) {
  std::string buffer(kMiB, '.');
  const std::string text = text_of(kMiB, 6);
  for (int i = 0; i < 2; ++i) {
    receive(b_, buffer);
    send(a_, b_, text);
    while (at_b_.receives.empty()) b_.progress();
    at_b_.receives.clear();
  }
  receive(b_, buffer);
  send(a_, b_, text);
  match();
  EXPECT_TRUE(at_b_.receives.empty());  // the second was read at once, so the third is streamed again
  progress_until([&] { return !at_b_.receives.empty(); });
}

TEST_F(MessengerStream, RangesOfBothSidesDiffer) {
  std::string text = text_of(2 * kMiB, 7);
  std::string buffer(text.size(), '.');
  const auto ranges = [](std::string& of, std::array<std::size_t, 4> bytes) {
    std::array<iovec, 4> all;
    std::size_t at = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      all[i] = {of.data() + at, bytes[i]};
      at += bytes[i];
    }
    return all;
  };
  const auto from = ranges(text, {1, 700'001, 0, text.size() - 700'002});
  const auto into = ranges(buffer, {300'000, 300'001, text.size() - 600'004, 3});
  for (const bool away : {false, true}) {
    std::fill(buffer.begin(), buffer.end(), '.');
    receive(b_, Buffers(into));
    send(a_, b_, Buffers(from));
    while (at_b_.receives.empty()) {
      b_.progress();
      if (!away) a_.progress();
    }
    at_b_.receives.clear();
    EXPECT_TRUE(buffer == text) << away;
  }
}

TEST_F(MessengerStream, OnlyWhatHasRoomIsSent) {
  const std::string text = text_of(2 * kMiB, 8);
  std::string buffer(kMiB + 3, '.');
  const std::size_t room = kMiB;
  receive(b_, Buffers(buffer.data(), room));
  send(a_, b_, text);
  progress_until([&] { return !at_b_.receives.empty(); });
  EXPECT_EQ(at_b_.receives.front().error, FI_ETRUNC);
  EXPECT_EQ(at_b_.receives.front().bytes, room);
  EXPECT_EQ(at_b_.receives.front().missing, kMiB);
  EXPECT_EQ(buffer, text.substr(0, room) + "...");
  at_b_.receives.clear();
  expect_order();
}

TEST_F(MessengerStream, BothDirectionsAtOnce) {
  std::deque<std::string> texts;
  std::deque<std::string> buffers;
  for (unsigned i = 0; i < 16; ++i) {
    const std::size_t bytes = 20'000 + i * 100'003;
    receive(i % 2 == 0 ? b_ : a_, buffers.emplace_back(bytes, '.'));
    send(i % 2 == 0 ? a_ : b_, i % 2 == 0 ? b_ : a_, texts.emplace_back(text_of(bytes, i)));
  }
  progress_until([&] { return at_a_.receives.size() == 8 && at_b_.receives.size() == 8; });
  EXPECT_TRUE(texts == buffers);
  progress_until([&] { return at_a_.sends.size() == 8 && at_b_.sends.size() == 8; });
}

TEST_F(MessengerStream, APeerThatEndsInBetweenLeavesNothingHanging) {
  const std::string text = text_of(8 * kMiB, 9);
  std::string buffer(text.size(), '.');
  {
    Log log;
    Messenger gone(log, kLarge, kProcessors);
    b_.link_to(gone.name()).address = 9;
    const std::string one = text_of(1, 0);
    std::string first(1, '.');
    send(gone, b_, one);
    receive(b_, first);
    while (at_b_.receives.empty()) {
      gone.progress();
      b_.progress();
    }
    at_b_.receives.clear();
    receive(b_, buffer);
    send(gone, b_, text);
    for (int i = 0; i < 6; ++i) {
      gone.progress();
      b_.progress();
    }
  }
  while (at_b_.receives.empty()) b_.progress();
  EXPECT_TRUE(at_b_.receives.front().error == FI_ECONNRESET || buffer == text);
  at_b_.receives.clear();
  pass(a_, b_, text_of(kMiB, 10));
}

TEST_F(MessengerStream, APeerThatSendsMuchHasALaneAsLongAsItDoes) {
  const std::size_t before = incoming(b_, a_);
  // A pause of this process may end the lane before it is seen here.
  for (unsigned i = 0; i < 17 || incoming(b_, a_) != before + kLane; ++i) pass(a_, b_, text_of(kMiB, i));
  progress_until([&] { return incoming(b_, a_) == before; });
}

TEST(MessengerOversubscribed, WithMoreEndpointsThanProcessorsTheReceiverCopiesAlone) {
  Log log;
  Messenger from(log, kLarge, 1);
  Messenger to(log, kLarge, 1);
  const std::string text = text_of(kMiB, 11);
  std::string buffer(text.size(), '.');
  ReceiveRequest request;
  request.buffers = Buffers(buffer.data(), buffer.size());
  ASSERT_EQ(to.receive(request), 0);
  SendRequest message;
  message.to = &from.link_to(to.name());
  message.buffers = Buffers(text.data(), text.size());
  ASSERT_EQ(from.send(message), 0);
  while (log.sends.empty()) {
    from.progress();
    to.progress();
  }
  EXPECT_TRUE(buffer == text);
}

}  // namespace
}  // namespace wherry::mpi
