// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamTransfer : public StreamTest {};

TEST_P(StreamTransfer, BytesGoBothWays) {
  Streams ends = connect_pair();
  EXPECT_EQ(ends.connector.send(pattern_.bytes(1000)).bytes, 1000U);
  expect_bytes(ends.acceptor, pattern_, 1000);
  EXPECT_EQ(ends.acceptor.send(pattern_.bytes(500, 1000)).bytes, 500U);
  expect_bytes(ends.connector, pattern_, 500, 1000);
}

TEST_P(StreamTransfer, NothingToMoveIsMovedAtOnce) {
  Streams ends = connect_pair();
  EXPECT_TRUE(ends.connector.send(std::span<const std::byte>{}).ok());
  EXPECT_TRUE(ends.connector.send(std::span<const iovec>{}).ok());
  EXPECT_TRUE(ends.connector.try_send(std::span<const std::byte>{}).ok());
  EXPECT_TRUE(ends.acceptor.receive_all(std::span<std::byte>{}).ok());
  EXPECT_TRUE(ends.connector.commit(0).ok());
  EXPECT_TRUE(ends.acceptor.consume(0).ok());
}

TEST_P(StreamTransfer, EmptyIsWouldBlock) {
  Streams ends = connect_pair();
  std::array<std::byte, 10> buffer{};
  const Result result = ends.acceptor.try_receive(buffer);
  EXPECT_TRUE(result.would_block());
  EXPECT_EQ(result.bytes, 0U);
}

TEST_P(StreamTransfer, AReceiveMovesWhatIsThere) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  ASSERT_EQ(ends.acceptor.wait_readable(kTimeout).bytes, 100U);
  std::vector<std::byte> buffer(1000);
  EXPECT_EQ(ends.acceptor.receive(part(buffer, 0, 30)).bytes, 30U);
  EXPECT_EQ(ends.acceptor.receive(part(buffer, 30, 900)).bytes, 70U);
  EXPECT_TRUE(pattern_.matches(part(buffer, 0, 100), 0));
}

TEST_P(StreamTransfer, TrySendTakesWhatFitsThenWouldBlock) {
  Streams ends = small_pair();
  const Result part_of_it = ends.connector.try_send(pattern_.bytes(5000));
  EXPECT_TRUE(part_of_it.ok());
  EXPECT_EQ(part_of_it.bytes, 4096U);
  const Result full = ends.connector.try_send(pattern_.bytes(1));
  EXPECT_TRUE(full.would_block());
  EXPECT_EQ(full.bytes, 0U);
  expect_bytes(ends.acceptor, pattern_, 4096);
}

TEST_P(StreamTransfer, SpaceComesBackWithoutHelp) {
  Streams ends = small_pair();
  std::size_t received = 0;
  for (std::size_t sent = 0; sent < 40'960;) {
    sent += ends.connector.try_send(pattern_.bytes(3000, sent)).bytes;
    while (received < sent) {
      std::vector<std::byte> buffer(700);
      const Result result = ends.acceptor.receive(buffer, kTimeout);
      ASSERT_TRUE(result.ok());
      ASSERT_TRUE(pattern_.matches(part(buffer, 0, result.bytes), received));
      received += result.bytes;
    }
    std::array<std::byte, 1> none{};
    ASSERT_TRUE(ends.acceptor.try_receive(none).would_block());
    ASSERT_TRUE(ends.connector.wait_writable(2048, kTimeout).ok());
  }
}

TEST_P(StreamTransfer, ManyBuffersAreOneMessage) {
  Streams ends = small_pair();
  auto bytes = pattern_.bytes(2000);
  const std::array<iovec, 5> from{vector_of(part(bytes, 0, 1)), vector_of(part(bytes, 1, 0)),
                                  vector_of(part(bytes, 1, 999)), iovec{nullptr, 0},
                                  vector_of(part(bytes, 1000, 1000))};
  EXPECT_EQ(ends.connector.send(from).bytes, 2000U);
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  std::vector<std::byte> read(2000);
  std::size_t got = 0;
  while (got < 2000) {
    const std::array<iovec, 3> to{vector_of(part(read, got, (2000 - got) / 3)), iovec{nullptr, 0},
                                  vector_of(part(read, got + (2000 - got) / 3, 2000 - got - (2000 - got) / 3))};
    const Result result = ends.acceptor.receive(to, kTimeout);
    ASSERT_TRUE(result.ok());
    got += result.bytes;
  }
  EXPECT_EQ(read, bytes);
}

TEST_P(StreamTransfer, ManyBuffersMayBeTakenInPart) {
  Streams ends = small_pair();
  auto bytes = pattern_.bytes(6000);
  const std::array<iovec, 3> from{vector_of(part(bytes, 0, 3000)), vector_of(part(bytes, 3000, 2000)),
                                  vector_of(part(bytes, 5000, 1000))};
  EXPECT_EQ(ends.connector.try_send(from).bytes, 4096U);
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  std::vector<std::byte> read(6000);
  std::size_t got = 0;
  while (got < 4096) {
    const std::array<iovec, 2> to{vector_of(part(read, got, 10)), vector_of(part(read, got + 10, 1000))};
    const Result result = ends.acceptor.try_receive(to);
    ASSERT_FALSE(result.failed());
    got += result.bytes;
  }
  EXPECT_TRUE(pattern_.matches(part(read, 0, 4096), 0));
  ASSERT_TRUE(ends.connector.wait_writable(1000, kTimeout).ok());
  EXPECT_EQ(ends.connector.try_send(std::span(from).last(1)).bytes, 1000U);
}

TEST_P(StreamTransfer, MoreThanTheRingHoldsIsSentWhileThePeerReceives) {
  for (const std::size_t ring : {4096UL, 16384UL, 65536UL, 1UL << 20, 16UL << 20}) {
    Streams ends = connect_pair({.ring_bytes = ring}, {.ring_bytes = ring});
    const std::size_t total = std::min<std::size_t>(3 * ring + 12'345, (16UL << 20) + 12'345);
    const auto bytes = pattern_.bytes(total);
    std::thread sender([&] { EXPECT_EQ(ends.connector.send(bytes, kTimeout).bytes, total); });
    std::vector<std::byte> read(total);
    EXPECT_EQ(ends.acceptor.receive_all(read, kTimeout).bytes, total);
    sender.join();
    EXPECT_TRUE(read == bytes) << "ring of " << ring;
  }
}

TEST_P(StreamTransfer, EachSideChoosesItsOwnRing) {
  Streams ends = connect_pair({.ring_bytes = 5000}, {.ring_bytes = 16UL << 20});
  EXPECT_EQ(ends.connector.receive_capacity(), 8192U);
  EXPECT_EQ(ends.acceptor.send_capacity(), 8192U);
  EXPECT_EQ(ends.acceptor.receive_capacity(), 16UL << 20);
  EXPECT_EQ(ends.connector.send_capacity(), 16UL << 20);
  EXPECT_EQ(send_until_full(ends.acceptor, pattern_), 8192U);
}

/// Its memory is the sender's to pay for.
TEST_P(StreamTransfer, OfAPeersRingNoMoreIsTouchedThanTheSenderWants) {
  Listener listener = listen(address(), {.ring_bytes = 1UL << 20});
  const ScopedEnvironment most("WHERRY_PEER_RING", "10000");
  Connecting connecting = start_connect(listener.local().to_string(), {.ring_bytes = 1UL << 20});
  Stream acceptor = listener.accept(kTimeout);
  std::optional<Stream> connector;
  while (!(connector = connecting.try_finish())) std::this_thread::yield();
  EXPECT_EQ(connector->send_capacity(), 8192U);
  EXPECT_EQ(acceptor.receive_capacity(), 8192U);
  EXPECT_EQ(acceptor.send_capacity(), 1UL << 20) << "the other direction is the other side's to bound";
  const std::byte* first = nullptr;
  const std::byte* last = nullptr;
  for (std::uint64_t sent = 0; sent < 100'000; sent += 3000) {
    ASSERT_EQ(connector->send(pattern_.bytes(3000, sent), kTimeout).bytes, 3000U);
    for (std::size_t left = 3000; left != 0;) {
      ASSERT_TRUE(acceptor.wait_readable(kTimeout).ok());
      const auto bytes = acceptor.peek(left).first;
      first = first == nullptr ? bytes.data() : std::min(first, bytes.data());
      last = std::max(last, bytes.data() + bytes.size());
      left -= acceptor.consume(bytes.size()).bytes;
    }
  }
  EXPECT_EQ(last - first, 8192);
}

TEST_P(StreamTransfer, TheConfiguredRingIsTheDefault) {
  const ScopedEnvironment ring("WHERRY_RING", "64K");
  const Streams ends = connect_pair();
  EXPECT_EQ(ends.connector.receive_capacity(), 65536U);
  EXPECT_EQ(ends.acceptor.receive_capacity(), 65536U);
}

TEST_P(StreamTransfer, ARingOutOfItsLimitsIsRoundedIntoThem) {
  EXPECT_EQ(connect_pair({.ring_bytes = 1}).connector.receive_capacity(), 4096U);
  EXPECT_EQ(connect_pair({.ring_bytes = SIZE_MAX}).connector.receive_capacity(), 1UL << 30);
}

TEST_P(StreamTransfer, AReceiveTimesOut) {
  Streams ends = connect_pair();
  std::array<std::byte, 8> buffer{};
  for (const auto timeout : {0ms, 1ms, 20ms}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ends.acceptor.receive(buffer, timeout).error, ETIMEDOUT);
    EXPECT_GE(std::chrono::steady_clock::now() - start, timeout);
    EXPECT_EQ(ends.acceptor.wait_readable(timeout).error, ETIMEDOUT);
  }
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(5)).ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
  const Result part_of_it = ends.acceptor.receive_all(buffer, 200ms);
  EXPECT_EQ(part_of_it.error, ETIMEDOUT);
  EXPECT_EQ(part_of_it.bytes, 5U);
  EXPECT_TRUE(pattern_.matches(std::span(buffer).first(5), 0));
}

TEST_P(StreamTransfer, ASendTimesOutAndTellsHowMuchWasTaken) {
  Streams ends = small_pair();
  const Result result = ends.connector.send(pattern_.bytes(5000), 5ms);
  EXPECT_EQ(result.error, ETIMEDOUT);
  EXPECT_EQ(result.bytes, 4096U);
  EXPECT_EQ(ends.connector.wait_writable(1, 0ms).error, ETIMEDOUT);
  expect_bytes(ends.acceptor, pattern_, 4096);
  EXPECT_TRUE(ends.connector.send(pattern_.bytes(904, 4096), kTimeout).ok()) << "a timeout breaks nothing";
  expect_bytes(ends.acceptor, pattern_, 904, 4096);
}

TEST_P(StreamTransfer, NoMoreLiesUnreadThanTheSenderAllows) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.limit_unread(5000).ok());
  EXPECT_EQ(ends.connector.send_capacity(), 5000U);
  const int space = ends.connector.send_descriptor();
  std::array<std::byte, 1> none{};
  std::uint64_t position = 0;
  for (int round = 0; round < 50; ++round) {
    // A fabric that delays bytes delays credit, too: what comes in parts is the same in all.
    std::size_t sent = 0;
    while (sent != 5000) {
      const std::size_t more = send_until_full(ends.connector, pattern_, position + sent);
      sent += more;
      ASSERT_LE(sent, 5000U);
      ASSERT_TRUE(more != 0 || becomes_readable(space, kTimeout)) << "round " << round << ", " << sent;
    }
    ASSERT_TRUE(ends.connector.reserve(1).empty());
    expect_bytes(ends.acceptor, pattern_, 5000, position);
    ASSERT_TRUE(ends.acceptor.try_receive(none).would_block());
    position += 5000;
  }
}

TEST_P(StreamTransfer, ALimitedSenderMovesWhatIsLargerThanTheLimit) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.limit_unread(1).ok());
  EXPECT_EQ(ends.connector.send_capacity(), 4096U) << "the smallest ring";
  std::thread receiver([&] { expect_bytes(ends.acceptor, pattern_, 1'000'000); });
  EXPECT_EQ(ends.connector.send(pattern_.bytes(1'000'000), kTimeout).bytes, 1'000'000U);
  receiver.join();
}

TEST_P(StreamTransfer, ALimitComesBeforeTheFirstByteAndIsAtMostTheRing) {
  Streams ends = small_pair();
  ASSERT_TRUE(ends.connector.limit_unread(1 << 20).ok());
  EXPECT_EQ(ends.connector.send_capacity(), 4096U);
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(1)).ok());
  EXPECT_EQ(ends.connector.limit_unread(4096).error, EINVAL);
}

TEST_P(StreamTransfer, CountersCount) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(200)).ok());
  expect_bytes(ends.acceptor, pattern_, 300 - 200);
  std::vector<std::byte> rest(200);
  ASSERT_EQ(ends.acceptor.receive_all(rest, kTimeout).bytes, 200U);
  EXPECT_EQ(ends.connector.counters().bytes_sent, 300U);
  EXPECT_EQ(ends.connector.counters().sends, 2U);
  EXPECT_EQ(ends.connector.counters().bytes_received, 0U);
  EXPECT_EQ(ends.acceptor.counters().bytes_received, 300U);
  EXPECT_GE(ends.acceptor.counters().receives, 2U);
  std::array<std::byte, 1> none{};
  EXPECT_EQ(ends.acceptor.receive(none, 1ms).error, ETIMEDOUT);
  EXPECT_GE(ends.acceptor.counters().receive_sleeps, 1U);
}

WHERRY_ON_EVERY_FABRIC(StreamTransfer);

}  // namespace
}  // namespace wherry::conformance
