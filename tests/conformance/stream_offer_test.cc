// SPDX-License-Identifier: Apache-2.0
// Large blocking transfers with the sender first: one piece goes over the ring, then an offer stands until the receiver
// comes, or has been waited for too long.
#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/conformance/stream_split.hpp"

namespace wherry::conformance {
namespace {

class StreamOffer : public StreamSplitTest {
 protected:
  void SetUp() override {
    if (!splits()) GTEST_SKIP() << "needs the peer's private memory";
  }
};

TEST_P(StreamOffer, WhoComesLateFindsOnePieceInTheRingAndSplitsTheRest) {
  Streams ends = pair_of(kMiB);
  std::vector<std::byte> buffer(2 * kMiB);
  const auto bytes = pattern_.bytes(buffer.size());
  with_a_waiting_receiver(ends, buffer, {}, [&] { EXPECT_TRUE(ends.connector.send(bytes).ok()); });
  // The sender waits for a while only, so a slow machine may need several rounds; a sender that does not wait at all
  // fills the ring, and no round succeeds.
  for (bool split = false; !split;) {
    const std::uint64_t sleeps = ends.connector.counters().send_sleeps;
    const std::uint64_t before = ends.connector.counters().bytes_sent_split;
    std::thread sender([&] { EXPECT_TRUE(ends.connector.send(bytes).ok()); });
    while (ends.connector.counters().send_sleeps == sleeps) std::this_thread::yield();
    EXPECT_TRUE(ends.acceptor.receive_all(buffer).ok());
    sender.join();
    EXPECT_TRUE(pattern_.matches(buffer, 0));
    split = ends.connector.counters().bytes_sent_split - before >= bytes.size() - 64 * kKiB;
  }
}

TEST_P(StreamOffer, ASenderThatWaitsForAnInvitationInVainSendsAllOverTheRing) {
  Streams ends = pair_of(kMiB);
  std::vector<std::byte> buffer(kMiB);
  const auto bytes = pattern_.bytes(buffer.size());
  for (int round = 0; round < 3; ++round) {
    with_a_waiting_receiver(ends, buffer, {}, [&] { EXPECT_TRUE(ends.connector.send(bytes).ok()); });
    // Nothing is received until the send has returned: the ring has room for all of it.
    ASSERT_TRUE(ends.connector.send(bytes).ok());
    ASSERT_TRUE(ends.acceptor.receive_all(buffer, kTimeout).ok());
    EXPECT_TRUE(pattern_.matches(buffer, 0));
  }
}

TEST_P(StreamOffer, OffersInBothDirectionsAtOnceAreTaken) {
  Streams ends = pair_of(64 * kKiB);
  const auto bytes = pattern_.bytes(kMiB);
  for (bool split = false; !split;) {
    const std::uint64_t before = ends.connector.counters().bytes_sent_split + ends.acceptor.counters().bytes_sent_split;
    std::vector<std::thread> threads;
    std::atomic<int> asleep{0};
    for (Stream* end : {&ends.connector, &ends.acceptor}) {
      const std::uint64_t sleeps = end->counters().send_sleeps;
      threads.emplace_back([&, end] { EXPECT_EQ(end->send(bytes).bytes, bytes.size()); });
      threads.emplace_back([&, end, sleeps] {
        while (end->counters().send_sleeps == sleeps) std::this_thread::yield();
        for (++asleep; asleep < 2;) std::this_thread::yield();
        std::vector<std::byte> buffer(bytes.size());
        EXPECT_EQ(end->receive_all(buffer).bytes, bytes.size());
        EXPECT_TRUE(pattern_.matches(buffer, 0));
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::uint64_t now = ends.connector.counters().bytes_sent_split + ends.acceptor.counters().bytes_sent_split;
    split = now - before >= 2 * (bytes.size() - 64 * kKiB);
  }
}

TEST_P(StreamOffer, AnOfferThatNobodyTakesIsWithdrawnWhenTheSenderIsCancelledOrTheReceiverCloses) {
  const auto bytes = pattern_.bytes(kMiB);
  for (const bool cancels : {false, true}) {
    for (int round = 0; round < 5; ++round) {
      Streams ends = pair_of(64 * kKiB);
      std::vector<std::byte> buffer(bytes.size());
      with_a_waiting_receiver(ends, buffer, {}, [&] { EXPECT_TRUE(ends.connector.send(bytes).ok()); });
      const std::uint64_t sleeps = ends.connector.counters().send_sleeps;
      Result sent;
      std::thread sender([&] { sent = ends.connector.send(bytes); });
      while (ends.connector.counters().send_sleeps == sleeps) std::this_thread::yield();
      cancels ? ends.connector.cancel() : ends.acceptor.close();
      sender.join();
      EXPECT_EQ(sent.error, cancels ? ECANCELED : EPIPE);
      EXPECT_LE(sent.bytes, 64 * kKiB);
      if (cancels) {
        EXPECT_EQ(ends.acceptor.receive_all(std::span(buffer).first(sent.bytes)).bytes, sent.bytes);
        EXPECT_TRUE(pattern_.matches(std::span(buffer).first(sent.bytes), 0));
      }
    }
  }
}

WHERRY_ON_EVERY_FABRIC(StreamOffer);

}  // namespace
}  // namespace wherry::conformance
