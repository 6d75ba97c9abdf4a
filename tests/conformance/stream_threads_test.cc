// SPDX-License-Identifier: Apache-2.0
// More than one thread: one per direction, cancelling, moving, and event loops on both sides.
#include <poll.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamThreads : public StreamTest {
 protected:
  void send_all(Stream& stream, std::size_t total) const {
    for (std::size_t sent = 0; sent < total;) {
      const std::size_t n = std::min<std::size_t>(total - sent, 1 + sent % 2777);
      ASSERT_TRUE(stream.send(pattern_.bytes(n, sent), kTimeout).ok());
      sent += n;
    }
  }
  void receive_all(Stream& stream, std::size_t total) const {
    std::vector<std::byte> buffer(3000);
    for (std::size_t received = 0; received < total;) {
      const Result result = stream.receive(buffer, kTimeout);
      ASSERT_TRUE(result.ok()) << result.error << " after " << received;
      ASSERT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes), received));
      received += result.bytes;
    }
  }
};

TEST_P(StreamThreads, OneSendsWhileAnotherReceives) {
  constexpr std::size_t kTotal = 1 << 20;
  Streams ends = small_pair();
  std::vector<std::thread> threads;
  for (Stream* end : {&ends.connector, &ends.acceptor}) {
    threads.emplace_back([this, end] { send_all(*end, kTotal); });
    threads.emplace_back([this, end] { receive_all(*end, kTotal); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(StreamThreads, AStreamMovesFromThreadToThread) {
  Streams ends = small_pair();
  std::thread reader([&] { receive_all(ends.acceptor, 100'000); });
  std::size_t position = 0;
  Stream travelling = std::move(ends.connector);
  while (position < 100'000) {
    std::thread([&, stream = std::exchange(travelling, Stream())]() mutable {
      const std::size_t n = std::min<std::size_t>(100'000 - position, 2345);
      EXPECT_TRUE(stream.send(pattern_.bytes(n, position), kTimeout).ok());
      position += n;
      travelling = std::move(stream);
    }).join();
  }
  reader.join();
}

TEST_P(StreamThreads, CancellingWakesAReceiverAndASender) {
  Streams ends = small_pair();
  std::thread receiver([&] {
    std::array<std::byte, 1> none{};
    EXPECT_EQ(ends.connector.receive(none).error, ECANCELED);
    EXPECT_EQ(ends.connector.try_receive(none).error, ECANCELED);
    EXPECT_EQ(ends.connector.wait_readable().error, ECANCELED);
    EXPECT_TRUE(ends.connector.peek().empty());
  });
  std::thread sender([&] {
    EXPECT_EQ(ends.connector.send(pattern_.bytes(5000)).error, ECANCELED);
    EXPECT_EQ(ends.connector.try_send(pattern_.bytes(1)).error, ECANCELED);
    EXPECT_EQ(ends.connector.wait_writable().error, ECANCELED);
    EXPECT_TRUE(ends.connector.reserve(1).empty());
  });
  const auto asleep = [&] {
    const StreamCounters counters = ends.connector.counters();
    return counters.send_sleeps > 0 && counters.receive_sleeps > 0;
  };
  while (!asleep()) std::this_thread::yield();
  ends.connector.cancel();
  receiver.join();
  sender.join();
}

TEST_P(StreamThreads, CancellingAtAnyMomentIsHeard) {
  for (int round = 0; round < 200; ++round) {
    Streams ends = small_pair();
    std::atomic<bool> started{false};
    std::thread receiver([&] {
      started = true;
      std::array<std::byte, 1> none{};
      EXPECT_EQ(ends.acceptor.receive(none).error, ECANCELED);
    });
    while (!started) std::this_thread::yield();
    dawdle(static_cast<std::uint64_t>(round) * 7919);
    ends.acceptor.cancel();
    receiver.join();
  }
}

TEST_P(StreamThreads, ThePeerOfACancelledStreamReceivesWhatWasSentThenAReset) {
  Streams ends = connect_pair();
  ASSERT_TRUE(ends.connector.send(pattern_.bytes(100)).ok());
  expect_bytes(ends.acceptor, pattern_, 100);
  ends.connector.cancel();
  ends.connector.close();
  std::array<std::byte, 1> none{};
  EXPECT_EQ(ends.acceptor.receive(none, kTimeout).error, ECONNRESET);
}

/// One side of two that talk at once, on one thread, as an I/O thread of a message library drives it: the send
/// descriptor is polled only while sending is blocked, and input stops now and then with bytes still waiting.
class EventLoop {
 public:
  EventLoop(Stream& stream, const Pattern& pattern, std::size_t total)
      : stream_(stream),
        pattern_(pattern),
        total_(total),
        polled_{pollfd{stream.receive_descriptor(), POLLIN, 0}, pollfd{stream.send_descriptor(), POLLIN, 0}} {}

  /// Until everything was sent and received. False: it stood still for longer than the timeout.
  bool run() {
    while (sent_ < total_ || received_ < total_) {
      if (!blocked_ && sent_ < total_) send_some();
      if (!wait()) return false;
      if (polled_[0].revents != 0 && polled_[0].fd >= 0) receive_some();
      if (polled_[1].revents != 0 && polled_[1].fd >= 0) blocked_ = false;
    }
    return true;
  }

 private:
  /// Sleeps if there is nothing to do.
  bool wait() {
    stopped_ = stopped_ > 0 ? stopped_ - 1 : 0;
    polled_[0].fd = stopped_ > 0 || received_ == total_ ? -1 : stream_.receive_descriptor();
    polled_[1].fd = blocked_ ? stream_.send_descriptor() : -1;
    const bool busy = stopped_ > 0 || (!blocked_ && sent_ < total_);
    polled_[0].revents = polled_[1].revents = 0;
    if (!busy && polled_[0].fd < 0 && polled_[1].fd < 0) return true;
    const int ready = ::poll(polled_.data(), polled_.size(), busy ? 0 : static_cast<int>(kTimeout.count() * 1000));
    return ready > 0 || busy;
  }

  void send_some() {
    const std::size_t n = std::min<std::size_t>(total_ - sent_, 1 + sent_ % 4999);
    const Result result = stream_.try_send(pattern_.bytes(n, sent_));
    ASSERT_FALSE(result.failed()) << result.error;
    sent_ += result.bytes;
    blocked_ = result.bytes < n;
  }

  void receive_some() {
    std::vector<std::byte> buffer(1 + received_ % 3001);
    const Result result = stream_.try_receive(buffer);
    ASSERT_FALSE(result.failed() || result.ended()) << result.error;
    ASSERT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes), received_));
    received_ += result.bytes;
    if (received_ % 64 < 4) stopped_ = 5;
  }

  Stream& stream_;
  const Pattern& pattern_;
  std::size_t total_;
  std::array<pollfd, 2> polled_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  bool blocked_ = false;
  int stopped_ = 0;  // for how many turns nothing is received
};

TEST_P(StreamThreads, TwoEventLoopsWithBothRingsFullDoNotStall) {
  Streams ends = small_pair();
  constexpr std::size_t kTotal = 3 << 20;
  std::thread other([&] { EXPECT_TRUE(EventLoop(ends.acceptor, pattern_, kTotal).run()); });
  EXPECT_TRUE(EventLoop(ends.connector, pattern_, kTotal).run());
  other.join();
}

// The stall of a transport that only asks for space when it has something waiting: a sender that was unblocked and then
// went silent must hear of new space when it blocks again.
TEST_P(StreamThreads, AnUnblockedSenderMayGoSilentAndBlockAgain) {
  Streams ends = small_pair();
  const int descriptor = ends.connector.send_descriptor();
  std::thread receiver([&] {
    std::vector<std::byte> buffer(5000);
    std::uint64_t received = 0;
    while (true) {
      const Result result = ends.acceptor.receive(buffer, kTimeout);
      if (!result.ok()) break;
      ASSERT_TRUE(pattern_.matches(std::span(buffer).first(result.bytes), received));
      received += result.bytes;
      dawdle(received);
    }
  });
  std::uint64_t sent = 0;
  for (std::uint64_t turn = 0; turn < 3000; ++turn) {
    const Result result = ends.connector.try_send(pattern_.bytes(1 + turn % 4000, sent));
    ASSERT_FALSE(result.failed());
    sent += result.bytes;
    // Speculative attempts before the descriptor was looked at, as a message library makes them.
    if (result.bytes == 0 && turn % 3 != 0) {
      ASSERT_TRUE(becomes_readable(descriptor, kTimeout)) << "stalled in turn " << turn;
    }
  }
  ends.connector.close();
  receiver.join();
}

WHERRY_ON_EVERY_FABRIC(StreamThreads);

}  // namespace
}  // namespace wherry::conformance
