// SPDX-License-Identifier: Apache-2.0
// The event descriptors, as a loop uses them that goes on until a call would block.
#include <poll.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamEventDescriptor : public StreamTest {
 protected:
  static bool readable(int descriptor) { return becomes_readable(descriptor, kTimeout); }

  /// Receives until it would block. Returns how many bytes came, which follow the pattern.
  std::size_t receive_all_there(Stream& stream, std::uint64_t position) {
    std::vector<std::byte> buffer(100'000);
    std::size_t count = 0;
    while (true) {
      const Result result = stream.try_receive(buffer);
      if (result.would_block() || result.ended() || result.failed()) return count;
      EXPECT_TRUE(pattern_.matches(part(buffer, 0, result.bytes), position + count));
      count += result.bytes;
    }
  }
};

/// Waits for an edge of a descriptor; a late ring for what was seen already is one too.
class Edges {
 public:
  explicit Edges(int descriptor) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = descriptor}};
    EXPECT_EQ(::epoll_ctl(set_.get(), EPOLL_CTL_ADD, descriptor, &event), 0);
  }
  [[nodiscard]] bool wait() const {
    epoll_event event{};
    return ::epoll_wait(set_.get(), &event, 1, static_cast<int>(std::chrono::milliseconds(kTimeout).count())) == 1;
  }

 private:
  UniqueFd set_{::epoll_create1(EPOLL_CLOEXEC)};
};

TEST_P(StreamEventDescriptor, TellsOfBytesThatCameAfterAnAttemptThatWouldBlock) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_event_descriptor();
  EXPECT_EQ(descriptor, ends.acceptor.receive_event_descriptor());
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_EQ(receive_all_there(ends.acceptor, 0), 0U);
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(100, 100 * round)).ok());
    std::size_t count = 0;
    while (count < 100) {
      ASSERT_TRUE(readable(descriptor)) << round;
      count += receive_all_there(ends.acceptor, 100 * round + count);
    }
    ASSERT_TRUE(falls_silent(descriptor, [&] { EXPECT_EQ(receive_all_there(ends.acceptor, 0), 0U); }));
  }
}

TEST_P(StreamEventDescriptor, AnAttemptThatWouldBlockCountsAlsoFromBeforeItWasAskedFor) {
  Streams ends = small_pair();
  ASSERT_EQ(receive_all_there(ends.acceptor, 0), 0U);
  const int data = ends.acceptor.receive_event_descriptor();
  const std::size_t sent = send_until_full(ends.connector, pattern_);
  EXPECT_TRUE(readable(data));
  const int space = ends.connector.send_event_descriptor();
  expect_bytes(ends.acceptor, pattern_, sent);
  EXPECT_TRUE(readable(space));
}

TEST_P(StreamEventDescriptor, TryReadableThatWouldBlockCountsAsAnAttempt) {
  Streams ends = connect_pair();
  const int descriptor = ends.acceptor.receive_event_descriptor();
  const auto try_readable = [&] { return ends.acceptor.try_readable(); };
  for (std::uint64_t round = 0; round < 50; ++round) {
    ASSERT_TRUE(try_readable().would_block());
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(100, 100 * round)).ok());
    while (try_readable().would_block()) ASSERT_TRUE(readable(descriptor)) << round;
    ASSERT_TRUE(try_readable().ok());
    expect_bytes(ends.acceptor, pattern_, 100, 100 * round);
    ASSERT_TRUE(falls_silent(descriptor, [&] { EXPECT_TRUE(try_readable().would_block()); }));
  }
  ASSERT_TRUE(ends.connector.finish_sending().ok());
  while (try_readable().would_block()) ASSERT_TRUE(readable(descriptor));
  EXPECT_TRUE(try_readable().ended());
  ends.acceptor.close();
  EXPECT_TRUE(try_readable().failed());
}

TEST_P(StreamEventDescriptor, IsAlwaysWritable) {
  Streams ends = connect_pair();
  for (const int descriptor : {ends.acceptor.receive_event_descriptor(), ends.acceptor.send_event_descriptor()}) {
    pollfd looked{.fd = descriptor, .events = POLLOUT, .revents = 0};
    EXPECT_EQ(::poll(&looked, 1, 0), 1);
    EXPECT_EQ(looked.revents, POLLOUT);
  }
}

TEST_P(StreamEventDescriptor, TellsOfSpaceThatCameAfterAnAttemptThatWouldBlock) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_event_descriptor();
  std::uint64_t sent = 0;
  for (int round = 0; round < 20; ++round) {
    const std::size_t count = send_until_full(ends.connector, pattern_, sent);
    ASSERT_NE(count, 0U) << round;
    expect_bytes(ends.acceptor, pattern_, count, sent);
    sent += count;
    ASSERT_TRUE(readable(descriptor)) << round;
  }
}

TEST_P(StreamEventDescriptor, TellsOfTheEndAndOfALeavingPeer) {
  Streams ends = small_pair();
  const int data = ends.acceptor.receive_event_descriptor();
  const int space = ends.acceptor.send_event_descriptor();
  ASSERT_EQ(send_until_full(ends.acceptor, pattern_), 4096U);
  ASSERT_EQ(receive_all_there(ends.acceptor, 0), 0U);
  ASSERT_TRUE(ends.connector.finish_sending().ok());
  ASSERT_TRUE(readable(data));
  std::array<std::byte, 1> none{};
  while (ends.acceptor.try_receive(none).would_block()) ASSERT_TRUE(readable(data));
  EXPECT_TRUE(ends.acceptor.try_receive(none).ended());
  ends.connector.close();
  ASSERT_TRUE(readable(space));
  while (!ends.acceptor.try_send(pattern_.bytes(1)).failed()) ASSERT_TRUE(readable(space));
}

TEST_P(StreamEventDescriptor, BlockingCallsAreWokenAsBefore) {
  Streams ends = small_pair();
  (void)ends.acceptor.receive_event_descriptor();
  (void)ends.acceptor.send_event_descriptor();
  const auto await_sleep = [&](std::uint64_t after) {
    while (ends.acceptor.counters().receive_sleeps == after) std::this_thread::yield();
  };
  std::atomic<std::uint64_t> sleeps_of_first_call = UINT64_MAX;
  std::thread peer([&] {
    await_sleep(0);
    EXPECT_TRUE(ends.connector.send(pattern_.bytes(10), kTimeout).ok());
    sleeps_of_first_call.wait(UINT64_MAX);
    await_sleep(sleeps_of_first_call);
    ends.acceptor.cancel();
  });
  expect_bytes(ends.acceptor, pattern_, 10);
  sleeps_of_first_call = ends.acceptor.counters().receive_sleeps;
  sleeps_of_first_call.notify_one();
  std::array<std::byte, 1> none{};
  EXPECT_EQ(ends.acceptor.receive(none).error, ECANCELED);
  peer.join();
}

/// Every ring that is lost stops one of the two for good.
TEST_P(StreamEventDescriptor, LoopsOnBothSidesMoveEverything) {
  constexpr std::size_t kBytes = 2'000'000;
  Streams ends = small_pair();
  std::thread sender([&] {
    const Edges edges(ends.connector.send_event_descriptor());
    std::size_t sent = send_until_full(ends.connector, pattern_);
    while (sent < kBytes) {
      ASSERT_TRUE(edges.wait()) << sent;
      sent += send_until_full(ends.connector, pattern_, sent);
    }
  });
  const Edges edges(ends.acceptor.receive_event_descriptor());
  std::size_t received = receive_all_there(ends.acceptor, 0);
  while (received < kBytes) {
    ASSERT_TRUE(edges.wait()) << received;
    received += receive_all_there(ends.acceptor, received);
  }
  sender.join();
}

/// The same over reserve and commit.
TEST_P(StreamEventDescriptor, ReserveFindsNothingOnlyIfTheDescriptorWillTell) {
  constexpr std::size_t kBytes = 1'000'000;
  Streams ends = small_pair();
  std::thread receiver([&] { expect_bytes(ends.acceptor, pattern_, kBytes); });
  const Edges edges(ends.connector.send_event_descriptor());
  std::size_t sent = 0;
  while (sent < kBytes) {
    const Regions space = ends.connector.reserve(kBytes - sent);
    if (space.empty()) {
      ASSERT_TRUE(edges.wait()) << sent;
      ASSERT_TRUE(ends.connector.try_send(std::span<const std::byte>()).ok());
      continue;
    }
    const auto bytes = pattern_.bytes(space.size(), sent);
    std::copy_n(bytes.begin(), space.first.size(), space.first.begin());
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(space.first.size()), bytes.end(), space.second.begin());
    ASSERT_TRUE(ends.connector.commit(space.size()).ok());
    sent += space.size();
  }
  receiver.join();
}

WHERRY_ON_EVERY_FABRIC(StreamEventDescriptor);

}  // namespace
}  // namespace wherry::conformance
