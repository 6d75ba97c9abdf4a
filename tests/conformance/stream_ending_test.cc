// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <thread>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamEnding : public StreamTest {
 protected:
  /// Leaves without finishing, as a process that dies does.
  static void die(Stream& stream) {
    stream.cancel();
    stream.close();
  }

  /// What sending comes to once the peer is known to be gone; it may take a few messages to notice.
  int send_error_after_peer_left(Stream& stream) {
    for (const auto end = in(kTimeout); std::chrono::steady_clock::now() < *end;) {
      const Result result = stream.send(pattern_.bytes(100), kTimeout);
      if (result.failed()) return result.error;
    }
    return 0;
  }
};

TEST_P(StreamEnding, AHalfCloseEndsOneDirectionOnly) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(1000)).ok());
  EXPECT_TRUE(ends.connector.finish_sending().ok());
  EXPECT_TRUE(ends.connector.finish_sending().ok()) << "twice is once";
  EXPECT_EQ(ends.connector.send(pattern_.bytes(1)).error, EPIPE);
  EXPECT_EQ(ends.connector.try_send(pattern_.bytes(1)).error, EPIPE);
  EXPECT_EQ(ends.connector.wait_writable(1).error, EPIPE);
  EXPECT_TRUE(ends.connector.reserve(1).empty());
  expect_all_then_end(ends.acceptor, pattern_, 1000);
  ASSERT_TRUE(ends.acceptor.send(pattern_.bytes(2000)).ok());
  expect_bytes(ends.connector, pattern_, 2000);
  ends.acceptor.close();
  std::array<std::byte, 1> none{};
  EXPECT_TRUE(ends.connector.receive(none, kTimeout).ended());
}

TEST_P(StreamEnding, TheEndIsNoErrorAndNotWouldBlock) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.finish_sending().ok());
  ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ended());
  std::vector<std::byte> buffer(10);
  const iovec one = vector_of(buffer);
  EXPECT_TRUE(ends.acceptor.receive(buffer).ended());
  EXPECT_TRUE(ends.acceptor.try_receive(buffer).ended());
  EXPECT_TRUE(ends.acceptor.receive(std::span(&one, 1)).ended());
  EXPECT_TRUE(ends.acceptor.try_receive(std::span(&one, 1)).ended());
  EXPECT_TRUE(ends.acceptor.receive_all(buffer).ended());
  EXPECT_TRUE(ends.acceptor.peek().empty());
}

TEST_P(StreamEnding, ReceiveAllTellsHowMuchCameBeforeTheEnd) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(70)).ok());
  ends.connector.close();
  std::vector<std::byte> buffer(100);
  const Result result = ends.acceptor.receive_all(buffer, kTimeout);
  EXPECT_TRUE(result.ended());
  EXPECT_EQ(result.bytes, 70U);
  EXPECT_TRUE(pattern_.matches(part(buffer, 0, 70), 0));
}

TEST_P(StreamEnding, EverythingSentBeforeACloseArrives) {
  for (const std::size_t size : {1UL, 4095UL, 4096UL}) {
    Streams ends = small_pair();
    ASSERT_EQ(ends.connector.send(pattern_.bytes(size)).bytes, size);
    ends.connector.close();
    EXPECT_FALSE(ends.connector.is_open());
    expect_all_then_end(ends.acceptor, pattern_, size);
  }
}

TEST_P(StreamEnding, ACloseWithALimitSaysThatEverythingArrived) {
  Streams ends = small_pair();
  ASSERT_EQ(ends.connector.send(pattern_.bytes(4000)).bytes, 4000U);
  EXPECT_TRUE(ends.connector.close(kTimeout).ok());
  EXPECT_FALSE(ends.connector.is_open());
  EXPECT_EQ(ends.connector.close(kTimeout).error, EBADF);
  expect_all_then_end(ends.acceptor, pattern_, 4000);
  EXPECT_TRUE(ends.acceptor.close(kTimeout).ok()) << "it had sent nothing that could be lost";
}

TEST_P(StreamEnding, ACloseAfterThePeersSaysWhetherThatHasReadEverything) {
  // There the unread bytes are in the peer's memory, and its end may not be noticed yet.
  const bool may_miss_it = GetParam().maps && GetParam().between_processes;
  for (const std::size_t read : {4000UL, 3999UL}) {
    Streams ends = small_pair();
    ASSERT_EQ(ends.connector.send(pattern_.bytes(4000)).bytes, 4000U);
    std::vector<std::byte> buffer(read);
    ASSERT_TRUE(ends.acceptor.receive_all(buffer, kTimeout).ok());
    ends.acceptor.close();
    EXPECT_TRUE(ends.connector.receive(buffer, kTimeout).ended());
    const Result closed = ends.connector.close(kTimeout);
    if (read == 4000 || (closed.ok() && may_miss_it)) {
      EXPECT_TRUE(closed.ok()) << closed.error;
    } else {
      EXPECT_EQ(closed.error, ECONNRESET);
    }
  }
}

TEST_P(StreamEnding, ADestroyedStreamWasClosed) {
  Streams ends = connect_pair();
  {
    Stream scoped = std::move(ends.connector);
    ASSERT_TRUE(scoped.send(pattern_.bytes(100'000)).ok());
  }
  expect_all_then_end(ends.acceptor, pattern_, 100'000);
}

TEST_P(StreamEnding, AssigningClosesWhatWasThere) {
  Streams one = connect_pair();
  Streams other = connect_pair();
  ASSERT_TRUE(one.connector.send(pattern_.bytes(10)).ok());
  one.connector = std::move(other.connector);
  expect_all_then_end(one.acceptor, pattern_, 10);
  ASSERT_TRUE(one.connector.send(pattern_.bytes(10)).ok());
  expect_bytes(other.acceptor, pattern_, 10);
}

TEST_P(StreamEnding, CloseDoesNotWaitForThePeerToRead) {
  Streams ends = small_pair();
  ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
  ends.connector.close();  // on this thread: would never return if it waited
  expect_all_then_end(ends.acceptor, pattern_, 4096);
}

TEST_P(StreamEnding, SendingToOneWhoClosedFailsWithEpipe) {
  Streams ends = connect_pair();
  ends.acceptor.close();
  EXPECT_EQ(send_error_after_peer_left(ends.connector), EPIPE);
  EXPECT_EQ(ends.connector.try_send(pattern_.bytes(1)).error, EPIPE);
  EXPECT_EQ(ends.connector.try_send(std::span<const std::byte>{}).error, EPIPE);
  EXPECT_EQ(ends.connector.wait_writable(1, kTimeout).error, EPIPE);
  EXPECT_EQ(ends.connector.commit(0).error, EPIPE);
  EXPECT_TRUE(ends.connector.reserve(1).empty());
}

TEST_P(StreamEnding, ASenderAsleepHearsOfTheClose) {
  Streams ends = small_pair();
  std::thread sender([&] {
    const Result result = ends.connector.send(pattern_.bytes(5000), kTimeout);
    EXPECT_EQ(result.error, EPIPE);
    EXPECT_EQ(result.bytes, 4096U);
  });
  while (ends.connector.counters().send_sleeps == 0) std::this_thread::yield();
  ends.acceptor.close();
  sender.join();
}

TEST_P(StreamEnding, AReceiverAsleepHearsOfTheEnd) {
  Streams ends = connect_pair();
  std::thread receiver([&] {
    std::array<std::byte, 1> none{};
    EXPECT_TRUE(ends.acceptor.receive(none, kTimeout).ended());
  });
  while (ends.acceptor.counters().receive_sleeps == 0) std::this_thread::yield();
  EXPECT_TRUE(ends.connector.finish_sending().ok());
  receiver.join();
}

TEST_P(StreamEnding, WhoDiesUnfinishedIsAResetAfterAllThatArrived) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(1000)).ok());
  ASSERT_EQ(ends.acceptor.wait_readable(kTimeout).bytes, 1000U);
  die(ends.connector);
  expect_bytes(ends.acceptor, pattern_, 1000);
  std::vector<std::byte> buffer(10);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ends.acceptor.receive(buffer, kTimeout).error, ECONNRESET);
  EXPECT_EQ(ends.acceptor.try_receive(buffer).error, ECONNRESET);
  EXPECT_EQ(ends.acceptor.wait_readable(kTimeout).error, ECONNRESET);
  EXPECT_EQ(ends.acceptor.receive_all(buffer, kTimeout).error, ECONNRESET);
  EXPECT_EQ(send_error_after_peer_left(ends.acceptor), EPIPE);
}

TEST_P(StreamEnding, APollingReceiverNoticesADeathWithoutEverSleeping) {
  Streams ends = connect_pair();
  die(ends.connector);
  std::array<std::byte, 1> none{};
  Result result = Result::blocked();
  for (const auto end = in(kTimeout); result.would_block() && std::chrono::steady_clock::now() < *end;) {
    result = ends.acceptor.try_receive(none);
  }
  EXPECT_EQ(result.error, ECONNRESET);
}

TEST_P(StreamEnding, APollingSenderNoticesADeathWithAFullRing) {
  Streams ends = small_pair();
  ASSERT_EQ(send_until_full(ends.connector, pattern_), 4096U);
  die(ends.acceptor);
  EXPECT_EQ(ends.connector.try_send(pattern_.bytes(1)).error, EPIPE);
}

TEST_P(StreamEnding, AClosedStreamSaysSo) {
  Streams ends = connect_pair();
  Stream moved_to = std::move(ends.connector);
  moved_to.close();
  moved_to.close();
  std::vector<std::byte> buffer(1);
  for (Stream* closed : {&ends.connector, &moved_to}) {
    EXPECT_FALSE(closed->is_open());
    EXPECT_EQ(closed->send(buffer).error, EBADF);
    EXPECT_EQ(closed->receive(buffer).error, EBADF);
    EXPECT_EQ(closed->receive_all(buffer).error, EBADF);
    EXPECT_EQ(closed->try_send(buffer).error, EBADF);
    EXPECT_EQ(closed->try_receive(buffer).error, EBADF);
    EXPECT_EQ(closed->commit(0).error, EBADF);
    EXPECT_EQ(closed->consume(0).error, EBADF);
    EXPECT_EQ(closed->wait_readable().error, EBADF);
    EXPECT_EQ(closed->wait_writable().error, EBADF);
    EXPECT_EQ(closed->finish_sending().error, EBADF);
    EXPECT_TRUE(closed->reserve(1).empty());
    EXPECT_TRUE(closed->peek().empty());
    EXPECT_EQ(closed->receive_descriptor(), -1);
    EXPECT_EQ(closed->send_descriptor(), -1);
    EXPECT_EQ(closed->receive_capacity(), 0U);
    EXPECT_EQ(closed->send_capacity(), 0U);
    EXPECT_EQ(closed->counters().bytes_sent, 0U);
    EXPECT_EQ(closed->local(), Address{});
    closed->cancel();
  }
}

TEST_P(StreamEnding, NothingIsLeftOpen) {
  {
    const Streams warm_up = connect_pair();
  }  // what a process opens once, such as its statistics
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    Streams ends = connect_pair();
    (void)ends.connector.receive_descriptor();
    (void)ends.acceptor.send_descriptor();
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
}

WHERRY_ON_EVERY_FABRIC(StreamEnding);

}  // namespace
}  // namespace wherry::conformance
