// SPDX-License-Identifier: Apache-2.0
// Large messages of many senders, which one receiver takes in turn, each from a standing offer, by an invitation that
// is faster, or over the ring where an offer was withdrawn: whichever of the two sides was first in each of the hundred
// thousands of races, no byte is lost, altered or received twice, and no side waits for ever.
#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <wherry/poller.hpp>

#include "base/scoped_environment.hpp"
#include "tests/stress/options.hpp"
#include "tests/stress/watchdog.hpp"

namespace wherry::stress {
namespace {

constexpr std::size_t kStreams = 4;
constexpr std::uint64_t kOperationsPerMessage = 64;  ///< what a large one costs of those that options() count

class SplitStress : public ::testing::Test {
 protected:
  struct Side {
    Stream stream;
    Progress progress;
  };

  /// Both sides know it: rarely as large as two pieces of a split copy and more, mostly so small that another race
  /// follows at once. Every one is larger than the ring.
  static std::size_t size_of(std::mt19937_64& random) {
    return random() % 64 == 0 ? 300'000 + random() % 500'000 : 10'000 + random() % 4'000;
  }
  static void doze(std::mt19937_64& random) {
    if (random() % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  }

  void send(Side& side, std::uint64_t seed, std::uint64_t messages) const {
    std::mt19937_64 sizes(seed);
    std::mt19937_64 moods(seed + 1);
    std::vector<std::byte> bytes(800'000);
    std::uint64_t sent = 0;
    for (std::uint64_t i = 0; i < messages; ++i) {
      const auto message = std::span(bytes).first(size_of(sizes));
      pattern_.fill(message, sent);
      const Result result = side.stream.send(message);
      // What a receiver read after the send had returned would be these.
      std::fill_n(message.begin(), 4096, std::byte{0});
      ASSERT_TRUE(result.ok()) << result.error;
      ASSERT_EQ(result.bytes, message.size());
      sent += message.size();
      side.progress.operations += 1;
      doze(moods);
    }
  }

  /// One message of the stream that has something.
  void receive(Side& side, std::mt19937_64& sizes) {
    const auto message = std::span(buffer_).first(size_of(sizes));
    const Result result = side.stream.receive_all(message);
    ASSERT_TRUE(result.ok() && result.bytes == message.size()) << result.error << " after " << side.progress.bytes;
    ASSERT_TRUE(pattern_.matches(message, side.progress.bytes)) << "after " << side.progress.bytes;
    side.progress.bytes += message.size();
    side.progress.operations += 1;
  }

  const Pattern pattern_{options().seed};
  ScopedEnvironment split_{"WHERRY_SPLIT", "2K"};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(800'000);
};

TEST_F(SplitStress, OffersAndInvitationsRaceForEveryMessage) {
  const std::uint64_t messages = options().operations / kOperationsPerMessage / kStreams;
  std::printf("--seed=%" PRIu64 " --operations=%" PRIu64 "\n", options().seed, options().operations);
  const StreamOptions ring{.ring_bytes = 4096};
  Listener listener = listen("wherry+shm://*:*", ring);
  std::array<Side, kStreams> senders;
  std::array<Side, kStreams> receivers;
  std::vector<Watchdog::Watched> watched;
  Poller poller;
  for (std::size_t i = 0; i < kStreams; ++i) {
    Connecting connecting = start_connect(listener.local().to_string(), ring);
    receivers[i].stream = listener.accept(kConnectTimeout);
    senders[i].stream = std::move(connecting.try_finish().value());
    poller.add(receivers[i].stream, i);
    watched.push_back({"sender", &senders[i].progress});
    watched.push_back({"receiver", &receivers[i].progress});
  }
  const Watchdog watchdog(watched, [] {});
  std::vector<std::thread> threads;
  std::vector<std::mt19937_64> sizes;
  for (std::size_t i = 0; i < kStreams; ++i) {
    sizes.emplace_back(options().seed + i);
    threads.emplace_back([&, i] { send(senders[i], options().seed + i, messages); });
  }
  std::mt19937_64 moods(options().seed);
  std::array<Poller::Token, kStreams> ready{};
  for (std::uint64_t left = kStreams * messages; left > 0 && !HasFatalFailure();) {
    const std::size_t count = poller.wait(ready);
    for (std::size_t i = 0; i < count && left > 0 && !HasFatalFailure(); ++i, --left) {
      receive(receivers[ready[i]], sizes[ready[i]]);
    }
    doze(moods);
  }
  if (HasFatalFailure()) std::_Exit(1);  // The senders wait for this side.
  for (std::thread& thread : threads) thread.join();
  std::uint64_t bytes = 0;
  std::uint64_t split = 0;
  for (std::size_t i = 0; i < kStreams; ++i) {
    bytes += receivers[i].progress.bytes;
    split += receivers[i].stream.counters().bytes_received_split;
    EXPECT_EQ(senders[i].stream.counters().bytes_sent_split, receivers[i].stream.counters().bytes_received_split);
  }
  std::printf("%" PRIu64 " messages, %.2f of their bytes split\n", kStreams * messages,
              static_cast<double>(split) / static_cast<double>(bytes));
}

/// As users have it: the sender chooses, so that both ways, and trials of the other one, follow each other.
TEST(SplitChoiceStress, MessagesArriveWholeWhicheverWayEachGoes) {
  const ScopedEnvironment unset("WHERRY_SPLIT", nullptr);
  const Pattern pattern{options().seed};
  const StreamOptions ring{.ring_bytes = 256 << 10};
  constexpr std::uint64_t kBytes = std::uint64_t{96} << 20;
  const auto size_of = [](std::uint64_t sent) { return 256'000 + (sent / 7) % 900'000; };
  Listener listener = listen("wherry+shm://*:*", ring);
  Connecting connecting = start_connect(listener.local().to_string(), ring);
  Stream receiver = listener.accept(kConnectTimeout);
  Stream sender = std::move(connecting.try_finish().value());
  std::thread sending([&] {
    std::vector<std::byte> message(2'000'000);
    for (std::uint64_t sent = 0; sent < kBytes;) {
      const std::size_t size = size_of(sent);
      pattern.fill(std::span(message).first(size), sent);
      const std::array<iovec, 2> buffers{iovec{message.data(), 16}, iovec{message.data() + 16, size - 16}};
      ASSERT_EQ(sender.send(buffers).bytes, size);
      sent += size;
    }
  });
  std::vector<std::byte> message(2'000'000);
  std::uint64_t received = 0;
  while (received < kBytes) {
    const auto place = std::span(message).first(size_of(received));
    ASSERT_EQ(receiver.receive_all(place).bytes, place.size());
    ASSERT_TRUE(pattern.matches(place, received)) << "after " << received;
    received += place.size();
  }
  sending.join();
  const std::uint64_t split = receiver.counters().bytes_received_split;
  EXPECT_EQ(sender.counters().bytes_sent_split, split);
  EXPECT_LT(split, received) << "the ring was never tried";
  if (split == 0) GTEST_SKIP() << "nothing can be split here";
}

}  // namespace
}  // namespace wherry::stress
