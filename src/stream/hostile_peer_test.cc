// SPDX-License-Identifier: Apache-2.0
// A stream against a hostile peer, which holds the other end of the connection: it writes any value into every word it
// can reach, and rings although nothing came.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "ring/ring.hpp"
#include "stream/handshake.hpp"
#include "tests/common/hostile_peer.hpp"

namespace wherry::stream {
namespace {

using namespace std::chrono_literals;
using layout::StreamPage;
using layout::Word;

constexpr std::size_t kCapacity = 4096;

class HostilePeer : public ::testing::Test {
 protected:
  HostilePeer() {
    Listener listener = listen("wherry+inproc://*:*", {.ring_bytes = kCapacity});
    const auto connecting = fabric::find("inproc").connect(listener.local(), offer_of({.own = kCapacity}));
    victim_ = listener.accept();
    hostile_ = connecting->try_finish();
    page_ = reinterpret_cast<StreamPage*>(hostile_->map());
  }

  Stream victim_;
  std::unique_ptr<fabric::Connection> hostile_;
  StreamPage* page_ = nullptr;  ///< the victim's
  std::vector<std::byte> buffer_ = std::vector<std::byte>(3 * kCapacity);
};

TEST_F(HostilePeer, ATailBeyondTheRingBreaksTheConnection) {
  page_->tail = kCapacity + 1;
  EXPECT_EQ(victim_.try_receive(buffer_).error, EPROTO);
  page_->tail = 0;
  EXPECT_EQ(victim_.receive(buffer_).error, EPROTO) << "broken for good";
  EXPECT_EQ(victim_.wait_readable().error, EPROTO);
  EXPECT_TRUE(victim_.peek().empty());
}

TEST_F(HostilePeer, ADeathFoundOnlyAfterwardsDoesNotUnsayWhatWasSent) {
  hostile_.reset();  // as a process that dies: it stores nothing more
  const Result first = victim_.send(std::span(buffer_).first(100));
  EXPECT_TRUE(first.ok()) << "published before the death was looked for";
  EXPECT_EQ(victim_.send(std::span(buffer_).first(100)).error, EPIPE);
}

TEST_F(HostilePeer, AHeadBeyondWhatWasSentBreaksTheConnection) {
  ASSERT_TRUE(victim_.send(std::span(buffer_).first(100)).ok());
  page_->head = std::uint64_t{1} << 40;
  EXPECT_EQ(victim_.send(buffer_).error, EPROTO);
  page_->head = 100;
  EXPECT_EQ(victim_.try_send(buffer_).error, EPROTO);
  EXPECT_EQ(victim_.wait_writable().error, EPROTO);
  EXPECT_TRUE(victim_.reserve(1).empty());
}

TEST_F(HostilePeer, AHeadThatTurnsWrongBetweenTwoBuffersOfOneSend) {
  const std::vector<iovec> buffers{{buffer_.data(), 100}, {buffer_.data(), buffer_.size() - 1}};
  ASSERT_EQ(victim_.try_send(std::span(buffer_).first(10)).bytes, 10U);
  page_->head = std::uint64_t{1} << 40;
  const Result result = victim_.try_send(buffers);
  EXPECT_EQ(result.error, EPROTO);
  EXPECT_LE(result.bytes, kCapacity);
}

TEST_F(HostilePeer, AnEndBeforeTheLastByteBreaksTheConnection) {
  page_->tail = 10;
  page_->finished = 5;
  EXPECT_EQ(victim_.receive(buffer_).bytes, 10U);
  EXPECT_EQ(victim_.receive(buffer_).error, EPROTO);
}

TEST_F(HostilePeer, AnEndBehindTheLastByteBreaksTheConnection) {
  page_->tail = 10;
  page_->finished = 100;
  EXPECT_EQ(victim_.receive(buffer_).bytes, 10U);
  EXPECT_EQ(victim_.receive(buffer_).error, EPROTO);
}

TEST_F(HostilePeer, RingingForNothingDoesNotOutlastATimeout) {
  std::atomic<bool> stop{false};
  std::thread ringer([&] {
    while (!stop) {
      for (const fabric::Bell bell : fabric::kBells) hostile_->announce(bell);
    }
  });
  EXPECT_EQ(victim_.receive(buffer_, 5ms).error, ETIMEDOUT);
  EXPECT_EQ(victim_.send(buffer_, 5ms).error, ETIMEDOUT);
  stop = true;
  ringer.join();
}

/// Writes random values over the words of the victim's page, sometimes a plausible one, until it is stopped.
void scribble(StreamPage& page, std::uint64_t seed, const std::atomic<bool>& stop) {
  std::mt19937_64 random(seed);
  while (!stop) {
    Word* const words[] = {&page.tail, &page.finished, &page.head, &page.closed};
    spoil(*words[random() % std::size(words)], random, 2 * kCapacity);
    if (random() % 16 == 0) std::this_thread::yield();
  }
}

TEST_F(HostilePeer, ScribblingAtAnyMomentEndsInAnErrorOrGoesOn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Listener listener = listen("wherry+inproc://*:*", {.ring_bytes = kCapacity});
    const auto connecting = fabric::find("inproc").connect(listener.local(), offer_of({.own = kCapacity}));
    Stream victim = listener.accept();
    const auto hostile = connecting->try_finish();
    std::atomic<bool> stop{false};
    std::thread scribbler([&] { scribble(*reinterpret_cast<StreamPage*>(hostile->map()), seed, stop); });
    for (int i = 0; i < 200; ++i) {
      const std::vector<iovec> buffers{{buffer_.data(), 100}, {buffer_.data(), buffer_.size()}};
      EXPECT_LE(victim.try_send(buffers).bytes, 100 + buffer_.size());
      EXPECT_LE(victim.receive(buffer_, 100us).bytes, kCapacity);
      EXPECT_LE(victim.reserve(SIZE_MAX).size(), kCapacity);
      EXPECT_LE(victim.peek().size(), kCapacity);
      (void)victim.consume(1);
      (void)victim.wait_writable(kCapacity, 100us);
    }
    stop = true;
    scribbler.join();
  }
}

}  // namespace
}  // namespace wherry::stream
