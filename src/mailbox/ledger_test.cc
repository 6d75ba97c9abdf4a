// SPDX-License-Identifier: Apache-2.0
#include "mailbox/ledger.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace wherry::mailbox {
namespace {

TEST(Division, HeadersComeFirstAndTheRestGoesByWeight) {
  const Division division{.budget = 128, .header = 2, .peers = 48, .weights = 4};
  EXPECT_EQ(division.payload(), 32U);
  EXPECT_EQ(division.share(0), 2U);
  EXPECT_EQ(division.share(1), 10U);
  EXPECT_EQ(division.share(3), 26U);
}

TEST(Division, HeadersAreGivenWhateverTheBudgetIs) {
  const Division division{.budget = 10, .header = 2, .peers = 48, .weights = 48};
  EXPECT_EQ(division.payload(), 0U);
  EXPECT_EQ(division.share(1), 2U);
}

TEST(Division, TheSharesNeverExceedTheBudgetAtAnyNumbers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto peers = static_cast<std::uint32_t>(1 + random() % 64);
    std::vector<std::uint32_t> weights(peers);
    Division division{.budget = static_cast<Lines>(random() % UINT32_MAX), .header = 2, .peers = peers};
    for (auto& weight : weights)
      division.weights += weight = static_cast<std::uint32_t>(random() >> (random() % 33 + 31));
    std::uint64_t sum = 0;
    for (const auto weight : weights) sum += division.share(weight);
    EXPECT_LE(sum, std::max<std::uint64_t>(division.budget, std::uint64_t{2} * peers));
  }
}

/// The peers of a ledger, which agree to their grants on demand.
struct Peers {
  void receive_grants(Ledger& ledger) {
    ledger.grant_pending([&](std::uint32_t peer, Lines lines) {
      EXPECT_FALSE(offered.contains(peer)) << "two grants outstanding";
      offered[peer] = lines;
    });
  }
  void agree(Ledger& ledger, std::uint32_t peer) {
    current[peer] = offered.at(peer);
    offered.erase(peer);
    ledger.on_agreement(peer);
    receive_grants(ledger);
  }
  void open(Ledger& ledger, std::uint32_t peer, Lines header) {
    ledger.open(peer, header);
    offered[peer] = header;
  }
  /// The lines that the peers may be using.
  [[nodiscard]] std::uint64_t in_use() const {
    std::uint64_t sum = 0;
    for (std::uint32_t peer = 0; peer < 64; ++peer) {
      const auto has = current.find(peer), gets = offered.find(peer);
      sum += std::max(has == current.end() ? 0 : has->second, gets == offered.end() ? 0 : gets->second);
    }
    return sum;
  }
  std::map<std::uint32_t, Lines> current, offered;
};

TEST(Ledger, BytesOfAShrinkAreGrantedToOthersOnlyAfterThePeerAgreed) {
  Ledger ledger(20);
  ledger.reserve(2);
  Peers peers;
  for (const std::uint32_t peer : {0U, 1U}) {
    peers.open(ledger, peer, 2);
    peers.agree(ledger, peer);
  }
  ledger.set_target(0, 18);
  peers.receive_grants(ledger);
  peers.agree(ledger, 0);
  EXPECT_EQ(peers.current[0], 18U);
  ledger.set_target(0, 2);
  ledger.set_target(1, 18);
  peers.receive_grants(ledger);
  EXPECT_EQ(peers.offered[0], 2U);
  EXPECT_FALSE(peers.offered.contains(1));
  peers.agree(ledger, 0);
  EXPECT_EQ(peers.offered[1], 18U);
}

TEST(Ledger, APeerThatDoesNotAgreeHoldsUpTheOthersOnlyInPart) {
  Ledger ledger(100);
  ledger.reserve(2);
  Peers peers;
  for (const std::uint32_t peer : {0U, 1U}) {
    peers.open(ledger, peer, 2);
    peers.agree(ledger, peer);
  }
  ledger.set_target(0, 42);
  peers.receive_grants(ledger);
  peers.agree(ledger, 0);
  ledger.set_target(0, 2);
  ledger.set_target(1, 98);
  peers.receive_grants(ledger);
  EXPECT_EQ(peers.offered[1], 58U);
}

TEST(Ledger, WhatALostPeerHeldGoesToTheOthers) {
  Ledger ledger(20);
  ledger.reserve(2);
  Peers peers;
  peers.open(ledger, 0, 2);
  peers.agree(ledger, 0);
  ledger.set_target(0, 18);
  peers.receive_grants(ledger);
  peers.open(ledger, 1, 2);
  peers.agree(ledger, 1);
  ledger.set_target(1, 18);
  peers.receive_grants(ledger);
  EXPECT_FALSE(peers.offered.contains(1));
  ledger.close(0);
  peers.receive_grants(ledger);
  EXPECT_EQ(peers.offered[1], 18U);
}

TEST(Ledger, NeverGrantsMoreThanTheBudgetAndReachesEveryLayout) {
  std::mt19937_64 random(7);
  constexpr std::uint32_t kPeers = 48;
  constexpr Lines kBudget = 1024, kHeader = 2;
  Ledger ledger(kBudget);
  ledger.reserve(kPeers);
  Peers peers;
  for (std::uint32_t peer = 0; peer < kPeers; ++peer) peers.open(ledger, peer, kHeader);
  std::vector<Lines> targets(kPeers, kHeader);
  for (int i = 0; i < 50'000; ++i) {
    if (random() % 64 == 0) {
      Division division{.budget = kBudget, .header = kHeader, .peers = kPeers};
      std::vector<std::uint32_t> weights(kPeers);
      for (auto& weight : weights) division.weights += weight = random() % 4 == 0 ? 1 : 0;
      for (std::uint32_t peer = 0; peer < kPeers; ++peer)
        ledger.set_target(peer, targets[peer] = division.share(weights[peer]));
      peers.receive_grants(ledger);
    }
    const auto peer = static_cast<std::uint32_t>(random() % kPeers);
    if (peers.offered.contains(peer)) peers.agree(ledger, peer);
    ASSERT_LE(peers.in_use(), kBudget);
    ASSERT_EQ(peers.in_use(), ledger.held());
  }
  while (!peers.offered.empty()) peers.agree(ledger, peers.offered.begin()->first);
  EXPECT_FALSE(ledger.has_pending());
  for (std::uint32_t peer = 0; peer < kPeers; ++peer) EXPECT_EQ(peers.current[peer], targets[peer]);
}

}  // namespace
}  // namespace wherry::mailbox
