// SPDX-License-Identifier: Apache-2.0
// Many streams in one poller: what is ready is reported, what is not is not, whatever is done to the streams meanwhile.
#include <wherry/poller.hpp>

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

using Token = Poller::Token;

class PollerTest : public StreamTest {
 protected:
  /// The tokens of one wait, in order.
  std::vector<Token> wait(Timeout timeout = kTimeout, std::size_t most = 64) {
    std::vector<Token> ready(most);
    ready.resize(poller_.wait(ready, timeout));
    return ready;
  }
  /// A report may prove spurious: waits until `stream`, the one with `token`, has something.
  void expect_ready(Stream& stream, Token token) {
    while (true) {
      const std::vector<Token> ready = wait();
      ASSERT_EQ(ready, std::vector<Token>{token});
      if (!stream.peek().empty()) return;
    }
  }
  /// Nothing is reported, but for what a fabric makes up that wakes spuriously.
  void expect_nothing(Timeout timeout = 2ms) {
    for (int i = 0; i < 30; ++i) {
      if (wait(timeout).empty()) return;
    }
    ADD_FAILURE() << "reported for ever";
  }

  Poller poller_;
};

TEST_P(PollerTest, BytesMakeAStreamReadyUntilTheyAreReceived) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 7);
  for (std::uint64_t round = 0; round < 300; ++round) {
    if (round % 3 == 0) expect_nothing();
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(100, 100 * round)).ok());
    expect_ready(ends.acceptor, 7);
    ASSERT_EQ(wait(), std::vector<Token>{7}) << "still there";
    expect_bytes(ends.acceptor, pattern_, 100, 100 * round);
    if (round % 2 == 0) expect_nothing(0ns);
  }
}

TEST_P(PollerTest, BytesThatWereThereBeforeCount) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  poller_.add(ends.acceptor, 1);
  EXPECT_EQ(wait(), std::vector<Token>{1});
}

TEST_P(PollerTest, OnlyWhoHasSomethingIsReported) {
  std::vector<Streams> pairs;
  for (Token token = 0; token < 20; ++token) {
    pairs.push_back(connect_pair({.ring_bytes = 4096}, {.ring_bytes = 4096}));
    poller_.add(pairs.back().acceptor, token);
  }
  expect_nothing();
  for (std::uint64_t round = 0; round < 100; ++round) {
    const Token token = round * 7 % 20;
    ASSERT_TRUE(pairs[token].connector.send(pattern_.bytes(10)).ok());
    expect_ready(pairs[token].acceptor, token);
    expect_bytes(pairs[token].acceptor, pattern_, 10);
  }
}

TEST_P(PollerTest, StreamsThatStayReadyAreReportedInTurn) {
  std::vector<Streams> pairs;
  for (Token token = 0; token < 5; ++token) {
    pairs.push_back(connect_pair());
    poller_.add(pairs.back().acceptor, token);
    ASSERT_TRUE(pairs.back().connector.send(pattern_.bytes(100)).ok());
    ASSERT_TRUE(pairs.back().acceptor.wait_readable(kTimeout).ok());
  }
  std::vector<int> reports(5);
  for (int i = 0; i < 100; ++i) {
    for (const Token token : wait(kTimeout, 2)) ++reports[token];
  }
  for (const int count : reports) EXPECT_EQ(count, 40);
}

TEST_P(PollerTest, AStreamThatHadBeenQuietIsFoundWhileAnotherIsBusy) {
  Streams busy = connect_pair();
  Streams quiet = connect_pair();
  poller_.add(busy.acceptor, 0);
  poller_.add(quiet.acceptor, 1);
  expect_nothing();
  ASSERT_TRUE(busy.connector.send(pattern_.bytes(1)).ok());
  ASSERT_TRUE(quiet.connector.send(pattern_.bytes(1)).ok());
  bool found = false;
  while (!found) {  // The busy one is ready all the time.
    for (const Token token : wait(kTimeout, 1)) found = found || (token == 1 && !quiet.acceptor.peek().empty());
  }
}

TEST_P(PollerTest, TheEndAndADeathAreReportedUntilTheStreamIsTakenOut) {
  Streams ended = connect_pair();
  Streams died = connect_pair();
  poller_.add(ended.acceptor, 0);
  poller_.add(died.acceptor, 1);
  expect_nothing();
  ASSERT_TRUE(ended.connector.finish_sending().ok());
  died.connector.cancel();
  died.connector.close();
  std::array<std::byte, 1> none{};
  const auto reported = [&](Token token) { return std::ranges::count(wait(), token) == 1; };
  for (int i = 0; i < 10; ++i) {
    while (!reported(0)) continue;
    while (!reported(1)) continue;
  }
  while (!ended.acceptor.try_receive(none).ended()) ASSERT_FALSE(wait().empty());
  EXPECT_EQ(died.acceptor.receive(none).error, ECONNRESET);
  poller_.remove(ended.acceptor);
  poller_.remove(died.acceptor);
  expect_nothing();
}

TEST_P(PollerTest, WhatWasPublishedBeforeADeathComesFirst) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 1);
  expect_nothing();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(5000)).ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  ends.connector.cancel();
  ends.connector.close();
  std::vector<std::byte> buffer(1000);
  std::uint64_t received = 0;
  while (true) {
    ASSERT_FALSE(wait().empty());
    const Result result = ends.acceptor.try_receive(buffer);
    if (result.would_block()) continue;
    if (!result.ok()) {
      EXPECT_EQ(result.error, ECONNRESET);
      break;
    }
    ASSERT_TRUE(pattern_.matches(part(buffer, 0, result.bytes), received));
    received += result.bytes;
  }
  EXPECT_EQ(received, 5000U);
}

TEST_P(PollerTest, CancellingAStreamReportsIt) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 3);
  expect_nothing();
  std::thread canceller([&] { ends.acceptor.cancel(); });
  std::array<std::byte, 1> none{};
  while (ends.acceptor.try_receive(none).error != ECANCELED) ASSERT_FALSE(wait().empty());
  EXPECT_EQ(wait(), std::vector<Token>{3});
  canceller.join();
}

// A blocking call sleeps on the very bell that the poller relies on.
TEST_P(PollerTest, ABlockingReceiveInBetweenLosesNoWakeUp) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 1);
  for (std::uint64_t round = 0; round < 50; ++round) {
    expect_nothing(0ns);
    expect_nothing(round % 2 == 0 ? 1ms : 0ms);  // Idle or active when the call comes.
    std::array<std::byte, 1> none{};
    ASSERT_EQ(ends.acceptor.receive(none, 1ms).error, ETIMEDOUT);
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    expect_ready(ends.acceptor, 1);
    expect_bytes(ends.acceptor, pattern_, 10);
  }
}

TEST_P(PollerTest, ReceivingWithoutAWaitLosesNoWakeUp) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 1);
  for (std::uint64_t round = 0; round < 50; ++round) {
    expect_nothing();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
      expect_bytes(ends.acceptor, pattern_, 10);
    }
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    expect_ready(ends.acceptor, 1);
    expect_bytes(ends.acceptor, pattern_, 10);
  }
}

TEST_P(PollerTest, AStreamTakenOutGetsItsDescriptorBack) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  poller_.add(ends.acceptor, 1);
  expect_nothing();
  poller_.remove(ends.acceptor);
  poller_.remove(ends.acceptor);
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  EXPECT_TRUE(becomes_readable(descriptor, kTimeout));
  EXPECT_TRUE(wait(1ms).empty());
  expect_bytes(ends.acceptor, pattern_, 10);
  poller_.add(ends.acceptor, 2);
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  expect_ready(ends.acceptor, 2);
}

TEST_P(PollerTest, AStreamMayBeMovedAndDestroyedWhileItIsPolled) {
  for (const bool wait_first : {false, true}) {
    Streams ends = connect_pair();
    poller_.add(ends.acceptor, 4);
    if (wait_first) expect_nothing();
    {
      Stream moved = std::move(ends.acceptor);
      ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
      expect_ready(moved, 4);
    }
    EXPECT_TRUE(wait(1ms).empty());
  }
}

TEST_P(PollerTest, ThePollerMayGoBeforeItsStreams) {
  Streams ends = connect_pair();
  {
    Poller other;
    other.add(ends.acceptor, 1);
    std::array<Token, 1> ready{};
    (void)other.wait(ready, 1ms);
  }
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  expect_bytes(ends.acceptor, pattern_, 10);
  poller_.add(ends.acceptor, 1);
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  expect_ready(ends.acceptor, 1);
}

TEST_P(PollerTest, MistakesAreToldApart) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 1);
  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code().value();
    }
    return 0;
  };
  Poller other;
  Stream closed;
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  EXPECT_EQ(error_of([&] { poller_.add(ends.acceptor, 2); }), EEXIST);
  EXPECT_EQ(error_of([&] { other.add(ends.acceptor, 2); }), EEXIST);
  EXPECT_EQ(error_of([&] { poller_.add(closed, 2); }), EBADF);
  EXPECT_EQ(error_of([&] { poller_.add(-1, 2); }), EBADF);
  EXPECT_EQ(error_of([&] { poller_.add(event.get(), 2); }), 0);
  EXPECT_EQ(error_of([&] { poller_.add(event.get(), 2); }), EEXIST);
  other.remove(ends.acceptor);
  other.remove(closed);
  other.remove(77);
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  expect_ready(ends.acceptor, 1);
  EXPECT_EQ(poller_.wait({}, 1h), 0U);
}

TEST_P(PollerTest, ADescriptorIsWaitedForAlongWithStreams) {
  Listener listener = listen(address());
  poller_.add(listener.descriptor(), 9);
  expect_nothing();
  Connecting connecting = start_connect(listener.local().to_string());
  std::optional<Stream> accepted;
  while (!accepted) {
    ASSERT_EQ(wait(), std::vector<Token>{9});
    accepted = listener.try_accept();
  }
  poller_.add(*accepted, 1);
  poller_.remove(listener.descriptor());
  expect_nothing();
  std::optional<Stream> connector;
  while (!(connector = connecting.try_finish())) (void)becomes_readable(connecting.descriptor(), 10ms);
  ASSERT_TRUE(connector->send(pattern_.bytes(10)).ok());
  expect_ready(*accepted, 1);
}

TEST_P(PollerTest, AnInterruptionEndsTheWaitUnderWayOrTheNext) {
  Streams ends = connect_pair();
  poller_.add(ends.acceptor, 1);
  for (int round = 0; round < 50; ++round) {
    std::thread interrupter([&] { poller_.interrupt(); });
    EXPECT_TRUE(wait({}).empty());
    interrupter.join();
  }
  poller_.interrupt();
  EXPECT_TRUE(wait({}).empty());
  expect_nothing();
}

TEST_P(PollerTest, ItsDescriptorIsReadableWhileSomethingIsReady) {
  Streams ends = connect_pair();
  Streams other = connect_pair();
  poller_.add(ends.acceptor, 1);
  const int descriptor = poller_.descriptor();
  poller_.add(other.acceptor, 2);
  const auto wait_for_nothing = [&] { (void)wait(0ns); };
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_TRUE(falls_silent(descriptor, wait_for_nothing)) << round;
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(becomes_readable(descriptor, kTimeout)) << round;
      (void)wait(0ns);
    }
    expect_bytes(ends.acceptor, pattern_, 10);
    if (round % 2 == 0) {
      ASSERT_TRUE(falls_silent(descriptor, wait_for_nothing)) << round;
      std::array<std::byte, 1> none{};
      ASSERT_EQ(ends.acceptor.receive(none, 1ms).error, ETIMEDOUT);  // Uses the bell up.
    }
  }
  ASSERT_TRUE(falls_silent(descriptor, wait_for_nothing));
  poller_.interrupt();
  EXPECT_TRUE(becomes_readable(descriptor, kTimeout));
  EXPECT_TRUE(falls_silent(descriptor, wait_for_nothing));
}

WHERRY_ON_EVERY_FABRIC(PollerTest);

}  // namespace
}  // namespace wherry::conformance
