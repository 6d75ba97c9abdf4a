// SPDX-License-Identifier: Apache-2.0
// Large blocking transfers, which both sides copy at once where the fabric and the kernel let them: the bytes and their
// order are the same whether they do or not, and what else lives on the stream notices nothing.
#include <cerrno>
#include <random>
#include <thread>

#include <wherry/poller.hpp>

#include "tests/conformance/stream_split.hpp"

namespace wherry::conformance {
namespace {

class StreamSplit : public StreamSplitTest {};

TEST_P(StreamSplit, BytesOfAllSizesArriveInOrderInBothDirectionsAtOnce) {
  for (const std::size_t ring : {4 * kKiB, 64 * kKiB, kMiB}) {
    Streams ends = pair_of(ring);
    std::vector<std::thread> threads;
    for (Stream* end : {&ends.connector, &ends.acceptor}) {
      threads.emplace_back([&, end] { send_random(*end, ring); });
      threads.emplace_back([&, end] { receive_random(*end, ring + 1); });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(StreamSplit, TheSmallestThresholdOfAll) {
  const ScopedEnvironment smallest("WHERRY_SPLIT", "1");
  Streams ends = pair_of(64 * kKiB);
  std::thread receiver([&] { receive_random(ends.acceptor, 2); });
  send_random(ends.connector, 1);
  receiver.join();
}

TEST_P(StreamSplit, WhatAWaitingReceiverAskedForIsSplitWhole) {
  Streams ends = pair_of(64 * kKiB);
  Unaligned memory(3 * kMiB + 17);
  for (std::size_t round = 1; round <= 5; ++round) {
    const auto bytes = pattern_.bytes(memory.bytes().size());
    with_a_waiting_receiver(ends, memory.bytes(), {},
                            [&] { EXPECT_EQ(ends.connector.send(bytes).bytes, bytes.size()); });
    if (splits()) {
      expect_split(ends, round * bytes.size());
    }
  }
  if (GetParam().fabric.find("inproc") != std::string_view::npos) {
    expect_split(ends, 0);
  }
}

TEST_P(StreamSplit, NeverWithATimeoutOnEitherSide) {
  for (const bool sender : {false, true}) {
    Streams ends = pair_of(64 * kKiB);
    std::vector<std::byte> buffer(kMiB);
    const auto bytes = pattern_.bytes(buffer.size());
    with_a_waiting_receiver(ends, buffer, sender ? Timeout{} : Timeout{kTimeout}, [&] {
      EXPECT_EQ(ends.connector.send(bytes, sender ? Timeout{kTimeout} : Timeout{}).bytes, bytes.size());
    });
    expect_split(ends, 0);
  }
}

TEST_P(StreamSplit, NeverWithTryCallsNorWhereItIsTurnedOff) {
  {
    Streams ends = pair_of(64 * kKiB);
    std::vector<std::byte> buffer(kMiB);
    const auto bytes = pattern_.bytes(buffer.size());
    with_a_waiting_receiver(ends, buffer, {}, [&] {
      for (std::size_t sent = 0; sent < bytes.size();) {
        sent += ends.connector.try_send(std::span(bytes).subspan(sent)).bytes;
      }
    });
    expect_split(ends, 0);
  }
  const ScopedEnvironment off("WHERRY_SPLIT", "0");
  Streams ends = pair_of(64 * kKiB);
  std::vector<std::byte> buffer(kMiB);
  const auto bytes = pattern_.bytes(buffer.size());
  with_a_waiting_receiver(ends, buffer, {}, [&] { EXPECT_EQ(ends.connector.send(bytes).bytes, bytes.size()); });
  expect_split(ends, 0);
}

TEST_P(StreamSplit, ABufferLargerThanTheMessageTakesSeveral) {
  Streams ends = pair_of(64 * kKiB);
  std::vector<std::byte> buffer(2 * kMiB);
  const auto bytes = pattern_.bytes(buffer.size());
  with_a_waiting_receiver(ends, buffer, {}, [&] {
    for (std::size_t sent = 0; sent < bytes.size(); sent += 256 * kKiB) {
      EXPECT_TRUE(ends.connector.send(std::span(bytes).subspan(sent, 256 * kKiB)).ok());
    }
  });
  EXPECT_TRUE(!splits() || ends.connector.counters().bytes_sent_split >= 256 * kKiB);
}

TEST_P(StreamSplit, ABufferSmallerThanTheMessageTakesAPart) {
  Streams ends = pair_of(64 * kKiB);
  std::thread sender([&] { EXPECT_TRUE(ends.connector.send(pattern_.bytes(4 * kMiB)).ok()); });
  std::size_t received = 0;
  for (std::vector<std::byte> buffer(100'001); received < 4 * kMiB;) {
    const Result result = ends.acceptor.receive(buffer);
    ASSERT_TRUE(result.ok() && result.bytes > 0 && result.bytes <= buffer.size());
    ASSERT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes), received));
    received += result.bytes;
  }
  EXPECT_EQ(received, 4 * kMiB);
  sender.join();
}

TEST_P(StreamSplit, AHeaderAndItsPayloadInOneSend) {
  Streams ends = pair_of(64 * kKiB);
  auto bytes = pattern_.bytes(kMiB + 16);
  const iovec pieces[] = {vector_of(part(bytes, 0, 16)), vector_of(part(bytes, 16, kMiB))};
  std::thread receiver([&] {
    for (int i = 0; i < 10; ++i) {
      expect_bytes(ends.acceptor, pattern_, 16);
      std::vector<std::byte> payload(kMiB);
      EXPECT_TRUE(ends.acceptor.receive_all(payload).ok());
      EXPECT_TRUE(pattern_.matches(payload, 16));
    }
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ends.connector.send(pieces).bytes, bytes.size());
  receiver.join();
}

TEST_P(StreamSplit, BothSendFirstWhereTheRingsHaveRoom) {
  Streams ends = pair_of(kMiB);
  const auto bytes = pattern_.bytes(700'000);
  std::vector<std::byte> buffer(bytes.size());
  for (int round = 0; round < 3; ++round) {
    for (Stream* end : {&ends.connector, &ends.acceptor}) ASSERT_EQ(end->send(bytes).bytes, bytes.size());
    for (Stream* end : {&ends.connector, &ends.acceptor}) {
      ASSERT_EQ(end->receive_all(buffer).bytes, bytes.size());
      EXPECT_TRUE(pattern_.matches(buffer, 0));
    }
  }
}

TEST_P(StreamSplit, TheEndAfterHalfABuffer) {
  Streams ends = pair_of(64 * kKiB);
  std::thread sender([&] {
    EXPECT_TRUE(ends.connector.send(pattern_.bytes(kMiB)).ok());
    EXPECT_TRUE(ends.connector.finish_sending().ok());
  });
  std::vector<std::byte> buffer(2 * kMiB);
  const Result result = ends.acceptor.receive_all(buffer);
  EXPECT_TRUE(result.ended());
  EXPECT_EQ(result.bytes, kMiB);
  EXPECT_TRUE(pattern_.matches(std::span(buffer).first(kMiB), 0));
  sender.join();
}

TEST_P(StreamSplit, WhatWasReservedBeforeIsVoid) {
  Streams ends = pair_of(64 * kKiB);
  std::vector<std::byte> buffer(kMiB);
  const auto bytes = pattern_.bytes(buffer.size());
  with_a_waiting_receiver(ends, buffer, {}, [&] {
    EXPECT_FALSE(ends.connector.reserve(100).empty());
    EXPECT_TRUE(ends.connector.send(bytes).ok());
  });
  EXPECT_EQ(ends.connector.commit(100).error, EINVAL);
}

TEST_P(StreamSplit, CancellingInMidTransferIsHeardOnBothSides) {
  const auto bytes = pattern_.bytes(4 * kMiB);
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    Streams ends = pair_of(64 * kKiB);
    const bool sender_cancels = round % 2 == 0;
    Stream& canceller = sender_cancels ? ends.connector : ends.acceptor;
    std::atomic<bool> started{false};
    Result sent, received;
    std::thread receiver([&] {
      std::vector<std::byte> buffer(bytes.size());
      while ((received = ends.acceptor.receive_all(buffer)).ok()) started = true;
      EXPECT_TRUE(pattern_.matches(std::span(buffer).first(received.bytes), 0));
    });
    std::thread sender([&] {
      while ((sent = ends.connector.send(bytes)).ok()) started = true;
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    canceller.cancel();
    (sender_cancels ? sender : receiver).join();
    canceller.close();
    (sender_cancels ? receiver : sender).join();
    EXPECT_EQ(sent.error, sender_cancels ? ECANCELED : EPIPE);
    EXPECT_EQ(received.error, sender_cancels ? ECONNRESET : ECANCELED);
  }
}

/// Sleeps at once wherever it waits, so that each bell is used.
class StreamSplitAsleep : public StreamSplit {
 protected:
  void transfer(Streams& ends, std::size_t bytes) {
    std::thread sender([&] { EXPECT_TRUE(ends.connector.send(pattern_.bytes(bytes)).ok()); });
    std::vector<std::byte> buffer(bytes);
    EXPECT_TRUE(ends.acceptor.receive_all(buffer).ok());
    EXPECT_TRUE(pattern_.matches(buffer, 0));
    sender.join();
  }

  [[nodiscard]] std::size_t receive_whole(Stream& stream, std::size_t count) const {
    std::vector<std::byte> buffer(count);
    const std::size_t received = stream.receive_all(buffer).bytes;
    EXPECT_TRUE(pattern_.matches(std::span(buffer).first(received), 0));
    return received;
  }

  ScopedEnvironment spin_{"WHERRY_SPIN", "0"};
};

TEST_P(StreamSplitAsleep, DescriptorsStillTellOfBytesAndSpace) {
  Streams ends = pair_of(64 * kKiB);
  const int data = ends.acceptor.receive_descriptor();
  const int space = ends.connector.send_descriptor();
  std::array<std::byte, 64> small{};
  std::vector<std::byte> none;
  for (std::size_t round = 0; round < 30; ++round) {
    transfer(ends, 300'000 + 37'000 * round);
    EXPECT_TRUE(falls_silent(data, [&] { EXPECT_TRUE(ends.acceptor.try_receive(small).would_block()); }));
    // On put fabrics space may return late.
    std::size_t filled = send_until_full(ends.connector, pattern_);
    EXPECT_TRUE(becomes_readable(data, kTimeout));
    EXPECT_TRUE(falls_silent(space, [&] { filled += send_until_full(ends.connector, pattern_, filled); }));
    expect_bytes(ends.acceptor, pattern_, filled);
    EXPECT_TRUE(becomes_readable(space, kTimeout));
    EXPECT_TRUE(ends.connector.try_send(part(none, 0, 0)).ok());
  }
}

TEST_P(StreamSplitAsleep, ADescriptorThatWasToTellOfSpaceStillDoesAfterASplitSend) {
  Streams ends = pair_of(64 * kKiB);
  const int space = ends.connector.send_descriptor();
  for (std::size_t round = 0; round < 30; ++round) {
    const std::size_t filled = send_until_full(ends.connector, pattern_);
    const std::size_t more = 300'000 + 37'000 * round;
    std::thread receiver([&] { EXPECT_EQ(receive_whole(ends.acceptor, filled + more), filled + more); });
    EXPECT_TRUE(ends.connector.send(pattern_.bytes(more, filled)).ok());
    receiver.join();
    EXPECT_TRUE(becomes_readable(space, kTimeout));
  }
}

TEST_P(StreamSplitAsleep, APollerStillHearsOfTheStream) {
  Streams ends = pair_of(64 * kKiB);
  Poller poller;
  poller.add(ends.acceptor, 7);
  std::array<Poller::Token, 4> ready{};
  for (std::size_t round = 0; round < 30; ++round) {
    while (poller.wait(ready, 1ms) != 0) continue;
    transfer(ends, 300'000 + 37'000 * round);
    std::thread sender([&] {
      std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(ends.connector.send(pattern_.bytes(10)).ok());
    });
    std::size_t waiting = 0;
    for (const Deadline end = in(kTimeout); waiting == 0 && std::chrono::steady_clock::now() < *end;) {
      (void)poller.wait(ready, kTimeout);
      waiting = ends.acceptor.peek().size();
    }
    EXPECT_EQ(waiting, 10U);
    sender.join();
    expect_bytes(ends.acceptor, pattern_, 10);
  }
  poller.remove(ends.acceptor);
}

WHERRY_ON_EVERY_FABRIC(StreamSplit);
WHERRY_ON_EVERY_FABRIC(StreamSplitAsleep);

}  // namespace
}  // namespace wherry::conformance
