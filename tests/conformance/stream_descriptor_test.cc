// SPDX-License-Identifier: Apache-2.0
// Both descriptors as an event loop uses them: readable when there is something to do, silent when there is not.
#include <sys/epoll.h>
#include <sys/select.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

bool readable_by_select(int descriptor, std::chrono::milliseconds timeout) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(descriptor, &set);
  timeval time{.tv_sec = timeout.count() / 1000, .tv_usec = timeout.count() % 1000 * 1000};
  return ::select(descriptor + 1, &set, nullptr, nullptr, &time) == 1;
}

/// An epoll descriptor that watches `descriptor`, inside another epoll descriptor, as libraries stack them.
class NestedEpoll {
 public:
  explicit NestedEpoll(int descriptor) {
    watch(inner_, descriptor);
    watch(outer_, inner_.get());
  }
  [[nodiscard]] bool readable(std::chrono::milliseconds timeout) const {
    epoll_event event{};
    return ::epoll_wait(outer_.get(), &event, 1, static_cast<int>(timeout.count())) == 1;
  }

 private:
  static void watch(const UniqueFd& epoll, int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    EXPECT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event), 0);
  }
  UniqueFd inner_{::epoll_create1(EPOLL_CLOEXEC)};
  UniqueFd outer_{::epoll_create1(EPOLL_CLOEXEC)};
};

/// falls_silent, asked in all three ways. What rings between two of them, as credit that a put fabric brings late, is
/// seen by all from then on.
template <class Quieten>
bool all_fall_silent(int descriptor, const NestedEpoll& epoll, Quieten&& quieten) {
  for (int i = 0; i < 30; ++i) {
    if (!falls_silent(descriptor, quieten)) return false;
    if (!epoll.readable(0ms) && !readable_by_select(descriptor, 0ms)) return true;
    EXPECT_TRUE(becomes_readable(descriptor, 0ms) && epoll.readable(0ms) && readable_by_select(descriptor, 0ms));
  }
  return false;
}

class StreamDescriptor : public StreamTest {
 protected:
  static bool readable(int descriptor) { return becomes_readable(descriptor, kTimeout); }
  static bool silent(int descriptor) { return !becomes_readable(descriptor, 10ms); }

  /// Receives until it would block and expects `count` bytes of the pattern from `position` on.
  void drain(Stream& stream, std::size_t count, std::uint64_t position = 0) {
    std::vector<std::byte> buffer(100'000);
    std::size_t received = 0;
    while (received < count) {
      ASSERT_TRUE(readable(stream.receive_descriptor()));
      const Result result = stream.try_receive(buffer);
      ASSERT_FALSE(result.failed() || result.ended()) << result.error;
      ASSERT_TRUE(pattern_.matches(part(buffer, 0, result.bytes), position + received));
      received += result.bytes;
    }
    ASSERT_EQ(received, count);
  }

  static auto receive_nothing(Stream& stream) {
    return [&stream] {
      std::array<std::byte, 1> none{};
      EXPECT_TRUE(stream.try_receive(none).would_block());
    };
  }
  static auto send_nothing(Stream& stream) {
    return [&stream] { EXPECT_TRUE(stream.try_send(std::span<const std::byte>{}).ok()); };
  }
};

// The receive descriptor -------------------------------------------------------------------------------------------

TEST_P(StreamDescriptor, BytesMakeItReadableUntilTheyAreReceived) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  EXPECT_EQ(descriptor, ends.acceptor.receive_descriptor());
  EXPECT_NE(descriptor, ends.acceptor.send_descriptor());
  EXPECT_TRUE(falls_silent(descriptor, receive_nothing(ends.acceptor)));
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(100, 100 * round)).ok());
    ASSERT_TRUE(readable(descriptor)) << round;
    drain(ends.acceptor, 100, 100 * round);
    ASSERT_TRUE(falls_silent(descriptor, receive_nothing(ends.acceptor))) << round;
  }
}

TEST_P(StreamDescriptor, BytesThatWereThereBeforeItWasAskedForCount) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  EXPECT_TRUE(readable(ends.acceptor.receive_descriptor()));
}

TEST_P(StreamDescriptor, ItStaysReadableWhileBytesAreLeft) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(readable(descriptor)) << i;
    std::array<std::byte, 1> one{};
    ASSERT_EQ(ends.acceptor.try_receive(one).bytes, 1U);
    ASSERT_TRUE(pattern_.matches(one, i));
  }
  EXPECT_TRUE(falls_silent(descriptor, receive_nothing(ends.acceptor)));
}

TEST_P(StreamDescriptor, EveryFormOfReceivingKeepsTheRule) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  const std::array<std::function<void()>, 4> forms{[&] { expect_bytes(ends.acceptor, pattern_, 10); },
                                                   [&] {
                                                     ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
                                                     ASSERT_GE(ends.acceptor.peek(10).size(), 10U);
                                                     ASSERT_TRUE(ends.acceptor.consume(10).ok());
                                                   },
                                                   [&] { drain(ends.acceptor, 10); },
                                                   [&] {
                                                     std::array<std::byte, 10> bytes{};
                                                     EXPECT_EQ(ends.acceptor.receive(bytes, kTimeout).bytes, 10U);
                                                   }};
  for (int round = 0; round < 20; ++round) {
    for (const auto& receive : forms) {
      ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
      receive();
      ASSERT_TRUE(falls_silent(descriptor, receive_nothing(ends.acceptor)));
      ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
      ASSERT_TRUE(readable(descriptor)) << "after another form of receiving";
      expect_bytes(ends.acceptor, pattern_, 10);
    }
  }
}

TEST_P(StreamDescriptor, ABlockingReceiveThatSleptLeavesItArmed) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::array<std::byte, 1> none{};
    ASSERT_EQ(ends.acceptor.receive(none, 1ms).error, ETIMEDOUT);
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    ASSERT_TRUE(readable(descriptor));
    expect_bytes(ends.acceptor, pattern_, 10);
  }
}

TEST_P(StreamDescriptor, APeekThatSawNothingLeavesItArmed) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  for (std::uint64_t round = 0; round < 20; ++round) {
    EXPECT_TRUE(falls_silent(descriptor, [&] { EXPECT_TRUE(ends.acceptor.peek().empty()); }));
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    ASSERT_TRUE(readable(descriptor));
    ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
    ASSERT_EQ(ends.acceptor.peek().size(), 10U);
    ASSERT_TRUE(ends.acceptor.consume(10).ok());
  }
}

TEST_P(StreamDescriptor, TheEndMakesItReadableForGood) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  receive_nothing(ends.acceptor)();
  ASSERT_TRUE(ends.connector.finish_sending().ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(readable(descriptor));
    std::array<std::byte, 1> none{};
    const Result result = ends.acceptor.try_receive(none);
    ASSERT_TRUE(result.ended() || (i < 2 && result.would_block()));
  }
}

TEST_P(StreamDescriptor, ADeathMakesItReadableForGood) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_descriptor();
  receive_nothing(ends.acceptor)();
  ends.connector.cancel();
  ends.connector.close();
  std::array<std::byte, 1> none{};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(readable(descriptor));
    EXPECT_EQ(ends.acceptor.try_receive(none).error, ECONNRESET);
  }
}

TEST_P(StreamDescriptor, CancellingMakesBothReadableForGood) {
  Streams ends = connect_pair();
  const int receives = ends.acceptor.receive_descriptor();
  const int sends = ends.acceptor.send_descriptor();
  receive_nothing(ends.acceptor)();
  ends.acceptor.cancel();
  ASSERT_TRUE(readable(sends));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(readable(receives));
    std::array<std::byte, 1> none{};
    EXPECT_EQ(ends.acceptor.try_receive(none).error, ECANCELED);
  }
  EXPECT_EQ(ends.acceptor.try_send(pattern_.bytes(1)).error, ECANCELED);
}

TEST_P(StreamDescriptor, PollSelectAndNestedEpollAgree) {
  Streams ends = small_pair();
  const int receives = ends.acceptor.receive_descriptor();
  const int sends = ends.connector.send_descriptor();
  const NestedEpoll receive_epoll(receives);
  const NestedEpoll send_epoll(sends);
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(all_fall_silent(receives, receive_epoll, receive_nothing(ends.acceptor)));
    std::size_t sent = 0;
    const auto fill = [&] { sent += send_until_full(ends.connector, pattern_, sent); };
    ASSERT_TRUE(all_fall_silent(sends, send_epoll, fill));
    ASSERT_TRUE(receive_epoll.readable(kTimeout));
    ASSERT_TRUE(readable_by_select(receives, kTimeout));
    ASSERT_TRUE(readable(receives));
    drain(ends.acceptor, sent);
    receive_nothing(ends.acceptor)();
    ASSERT_TRUE(send_epoll.readable(kTimeout));
    ASSERT_TRUE(readable_by_select(sends, kTimeout));
    ASSERT_TRUE(readable(sends));
    ASSERT_TRUE(ends.connector.wait_writable(2048, kTimeout).ok());
    ASSERT_TRUE(all_fall_silent(sends, send_epoll, send_nothing(ends.connector)));
  }
}

// The send descriptor ----------------------------------------------------------------------------------------------

TEST_P(StreamDescriptor, SpaceMakesTheSendDescriptorReadable) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  std::uint64_t position = 0;
  for (int round = 0; round < 50; ++round) {
    std::size_t sent = 0;
    ASSERT_TRUE(falls_silent(descriptor, [&] { sent += send_until_full(ends.connector, pattern_, position + sent); }));
    drain(ends.acceptor, sent, position);
    receive_nothing(ends.acceptor)();
    ASSERT_TRUE(readable(descriptor)) << round;
    position += sent;
  }
}

TEST_P(StreamDescriptor, ASendTakenInPartAsksForSpaceToo) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  ASSERT_EQ(ends.connector.try_send(pattern_.bytes(5000)).bytes, 4096U);
  drain(ends.acceptor, 4096);
  receive_nothing(ends.acceptor)();
  EXPECT_TRUE(readable(descriptor));
}

TEST_P(StreamDescriptor, ABlockingWaitThatSleptLeavesTheSendDescriptorArmed) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
  ASSERT_EQ(ends.connector.wait_writable(1, 5ms).error, ETIMEDOUT);
  expect_bytes(ends.acceptor, pattern_, 4096);
  EXPECT_TRUE(readable(descriptor));
}

TEST_P(StreamDescriptor, ABlockBeforeItWasAskedForCounts) {
  Streams ends = small_pair();
  ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
  const int descriptor = ends.connector.send_descriptor();
  EXPECT_TRUE(silent(descriptor) || !GetParam().rings_exactly);
  drain(ends.acceptor, 4096);
  receive_nothing(ends.acceptor)();
  EXPECT_TRUE(readable(descriptor));
}

TEST_P(StreamDescriptor, WithoutABlockTheSendDescriptorIsSilent) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  Streams ends = connect_pair();
  const int descriptor = ends.connector.send_descriptor();
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(ends.connector.try_send(pattern_.bytes(100)).bytes, 100U);
    expect_bytes(ends.acceptor, pattern_, 100);
  }
  EXPECT_TRUE(silent(descriptor));
}

// An event loop that has nothing more to send must be able to stop the noise.
TEST_P(StreamDescriptor, SendingNothingSilencesTheSendDescriptor) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  std::thread sender([&] { EXPECT_TRUE(ends.connector.send(pattern_.bytes(5000), kTimeout).ok()); });
  while (ends.connector.counters().send_sleeps == 0) std::this_thread::yield();
  expect_bytes(ends.acceptor, pattern_, 4096);
  sender.join();
  EXPECT_TRUE(falls_silent(descriptor, send_nothing(ends.connector)));
  expect_bytes(ends.acceptor, pattern_, 904, 4096);
  receive_nothing(ends.acceptor)();
  EXPECT_TRUE(falls_silent(descriptor, send_nothing(ends.connector)));
}

TEST_P(StreamDescriptor, TheSendDescriptorIsRaisedUntilTheNextAttempt) {
  Streams ends = small_pair();
  ends.connector.raise_send_descriptor();
  const int descriptor = ends.connector.send_descriptor();
  EXPECT_TRUE(!GetParam().rings_exactly || silent(descriptor)) << "nobody polled it when it was raised";
  for (int i = 0; i < 3; ++i) {
    ends.connector.raise_send_descriptor();
    EXPECT_TRUE(readable(descriptor));
    EXPECT_TRUE(falls_silent(descriptor, [&] { (void)ends.connector.try_send(std::span<const std::byte>{}); }));
  }
  const std::size_t sent = send_until_full(ends.connector, pattern_);
  ends.connector.raise_send_descriptor();
  EXPECT_TRUE(falls_silent(descriptor, [&] { (void)ends.connector.try_send(pattern_.bytes(1, sent)); }));
  expect_bytes(ends.acceptor, pattern_, sent);
  EXPECT_TRUE(readable(descriptor)) << "raising it has not used up the peer's ring";
}

TEST_P(StreamDescriptor, ARaisedSendDescriptorIsSilencedByTheNextAttemptThatSendsAll) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  std::uint64_t sent = 0;
  for (int i = 0; i < 3; ++i) {
    for (int raised = 0; raised <= i; ++raised) ends.connector.raise_send_descriptor();
    ASSERT_TRUE(readable(descriptor));
    EXPECT_TRUE(falls_silent(descriptor, [&] {
      EXPECT_EQ(ends.connector.try_send(pattern_.bytes(1, sent)).bytes, 1U);
      ++sent;
    }));
  }
}

/// An epoll set that reports what becomes readable once, as event loops use it that take all they are told of.
TEST_P(StreamDescriptor, EveryRingIsAnEdge) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  const UniqueFd edges(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = descriptor}};
  ASSERT_EQ(::epoll_ctl(edges.get(), EPOLL_CTL_ADD, descriptor, &event), 0);
  const auto await_edge = [&] {
    return ::epoll_wait(edges.get(), &event, 1, static_cast<int>(std::chrono::milliseconds(kTimeout).count())) == 1;
  };
  std::uint64_t sent = 0;
  for (int i = 0; i < 3; ++i) {
    std::size_t count = 0;  // Space that came late rang for an attempt that has been made: the next one arms anew.
    do {
      count += send_until_full(ends.connector, pattern_, sent + count);
    } while (::epoll_wait(edges.get(), &event, 1, 0) == 1);
    expect_bytes(ends.acceptor, pattern_, count, sent);
    EXPECT_TRUE(await_edge()) << "the peer's";
    sent += count;
    EXPECT_EQ(ends.connector.try_send(std::span<const std::byte>{}).error, 0);
    ends.connector.raise_send_descriptor();
    EXPECT_TRUE(await_edge()) << "this side's own";
    EXPECT_EQ(ends.connector.try_send(std::span<const std::byte>{}).error, 0);
  }
}

TEST_P(StreamDescriptor, ThePeersLeavingMakesTheSendDescriptorReadable) {
  for (const bool in_order : {true, false}) {
    Streams ends = small_pair();
    const int descriptor = ends.connector.send_descriptor();
    ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
    if (!in_order) ends.acceptor.cancel();
    ends.acceptor.close();
    ASSERT_TRUE(readable(descriptor));
    Result result = ends.connector.try_send(pattern_.bytes(1));
    if (result.would_block() && readable(descriptor)) result = ends.connector.try_send(pattern_.bytes(1));
    EXPECT_EQ(result.error, EPIPE);
  }
}

WHERRY_ON_EVERY_FABRIC(StreamDescriptor);

}  // namespace
}  // namespace wherry::conformance
