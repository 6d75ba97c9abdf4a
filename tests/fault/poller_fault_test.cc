// SPDX-License-Identifier: Apache-2.0
// A poller with peers that are killed at any moment, or hostile: the others are served as if nothing were, and what the
// dead had published arrives before the news of their death.
#include <unistd.h>

#include <cerrno>
#include <random>
#include <thread>

#include <wherry/poller.hpp>

#include "stream/handshake.hpp"
#include "tests/common/hostile_peer.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kPeers = 12;
constexpr std::size_t kCapacity = 4096;

struct Peers {
  std::array<std::atomic<std::uint64_t>, kPeers> accepted{};
};

class PollerFault : public FaultTest {
 protected:
  /// Sends the pattern in pieces of all sizes, with pauses, for ever or until it has sent `total`.
  [[nodiscard]] Child sender(const Listener& listener, std::size_t which, std::uint64_t total) {
    return Child([=, this, where = listener.local().to_string()] {
      Stream stream = connect(where, {}, kTimeout);
      std::minstd_rand random(static_cast<std::uint32_t>(which + 1));
      std::uint64_t sent = 0;
      while (total == 0 || sent < total) {
        const auto bytes = pattern_.bytes(1 + random() % (random() % 8 == 0 ? 9000 : 100), sent);
        if (!stream.send(bytes).ok()) return false;
        sent += bytes.size();
        peers_->accepted[which] = sent;
        if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }
      return stream.finish_sending().ok();
    });
  }

  /// Receives what there is of `stream`. False: it is over, and `last` says how.
  bool drain(Stream& stream, std::uint64_t& received, Result& last) const {
    std::vector<std::byte> buffer(10'000);
    while (true) {
      last = stream.try_receive(buffer);
      if (last.would_block()) return true;
      if (!last.ok()) return false;
      EXPECT_TRUE(pattern_.matches(std::span(buffer).first(last.bytes), received)) << "at " << received;
      received += last.bytes;
    }
  }

  SharedValue<Peers> peers_;
};

TEST_F(PollerFault, WhatTheKilledHadPublishedArrivesAndTheOthersAreServed) {
  for (int round = 0; round < 8; ++round) {
    for (auto& accepted : peers_->accepted) accepted = 0;
    Listener listener = listen(address(), {.ring_bytes = round % 2 == 0 ? kCapacity : 1 << 20});
    std::vector<Child> children;
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < kPeers; ++i) {
      children.push_back(sender(listener, i, i % 3 == 0 ? 300'000 : 0));  // The others send until they are killed.
      streams.push_back(listener.accept(kTimeout));
    }
    Poller poller;
    for (std::size_t i = 0; i < kPeers; ++i) poller.add(streams[i], i);
    std::mt19937_64 random(static_cast<std::uint64_t>(round));
    std::array<Poller::Token, 4> ready{};
    std::array<std::uint64_t, kPeers> received{};
    std::size_t to_kill = 1;
    for (std::size_t open = kPeers; open > 0;) {
      if (random() % 50 == 0 && to_kill < kPeers) {
        if (to_kill % 3 != 0) children[to_kill].kill();
        ++to_kill;
      }
      const std::size_t count = poller.wait(ready, to_kill < kPeers ? Timeout(1ms) : Timeout(kTimeout));
      ASSERT_TRUE(count != 0 || to_kill < kPeers) << open << " are never told of";
      for (const Poller::Token token : std::span(ready).first(count)) {
        Result last;
        if (drain(streams[token], received[token], last)) continue;
        if (token % 3 == 0) {
          EXPECT_TRUE(last.ended());
        } else {
          EXPECT_EQ(last.error, ECONNRESET);
        }
        EXPECT_GE(received[token], peers_->accepted[token]);
        streams[token].close();
        --open;
      }
    }
  }
}

TEST_F(PollerFault, AHostilePeerHoldsUpNobodyElse) {
  Listener listener = listen(address(), {.ring_bytes = kCapacity});
  // Writes over all words of the victim's pages and rings without a pause.
  const Child hostile([where = listener.local()]() -> bool {
    const auto connection = shake_hands(where, stream::offer_of({.own = kCapacity}));
    auto* words = reinterpret_cast<layout::Word*>(connection->map() - layout::kBellPageBytes);
    std::mt19937_64 random(5);
    while (true) {
      // Of the two pages the bells' first: a stream that broke is out of the game, ringing goes on.
      words[random() % (random() % 4096 == 0 ? 1024 : 24)] = random() % 4;
      connection->announce(fabric::Bell::data);
    }
  });
  Stream attacked = listener.accept(kTimeout);
  Poller poller;
  poller.add(attacked, 1);
  Child honest = sender(listener, 0, 3'000'000);
  Stream stream = listener.accept(kTimeout);
  poller.add(stream, 0);
  std::array<Poller::Token, 2> ready{};
  std::uint64_t received = 0;
  int attacks = 0;
  Result last;
  for (bool open = true; open;) {
    const std::size_t count = poller.wait(ready, kTimeout);
    ASSERT_NE(count, 0U);
    for (const Poller::Token token : std::span(ready).first(count)) {
      std::array<std::byte, 100> some{};
      if (token == 0 && !drain(stream, received, last)) open = false;
      if (token == 1) (void)attacked.try_receive(some);
      // What is broken for good would be told of for ever.
      if (token == 1 && ++attacks == 2000) poller.remove(attacked);
    }
  }
  EXPECT_TRUE(last.ended());
  EXPECT_EQ(received, peers_->accepted[0]);
  EXPECT_EQ(honest.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
