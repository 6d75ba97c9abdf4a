// SPDX-License-Identifier: Apache-2.0
#include "mailbox/top_senders.hpp"

#include <gtest/gtest.h>

#include <random>

namespace wherry::mailbox {
namespace {

constexpr std::uint32_t kPeers = 48;

class TopSendersTest : public ::testing::Test {
 protected:
  TopSendersTest() { top_senders_.reserve(kPeers); }
  void send(std::uint32_t peer, std::size_t bytes) {
    if (top_senders_.on_piece(peer, bytes) && top_senders_.end_period()) ++changes_;
  }
  TopSenders top_senders_;
  int changes_ = 0;
};

TEST_F(TopSendersTest, TwoNeighboursAreSeenWithinAThousandPiecesAmongRareOthers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    send(i % 64 == 0 ? static_cast<std::uint32_t>(random() % kPeers) : 1 + 2 * static_cast<std::uint32_t>(i % 2), 4096);
  }
  EXPECT_TRUE(top_senders_.is_top_sender(1));
  EXPECT_TRUE(top_senders_.is_top_sender(3));
  EXPECT_LE(top_senders_.count(), 6U);
}

TEST_F(TopSendersTest, ASettledPatternChangesNothingMore) {
  std::mt19937_64 random(2);
  const auto exchange = [&](int pieces) {
    for (int i = 0; i < pieces; ++i) send(static_cast<std::uint32_t>(random() % 4), random() % 8192);
  };
  exchange(1000);
  const int before = changes_;
  exchange(1'000'000);
  EXPECT_EQ(changes_, before);
  EXPECT_EQ(top_senders_.count(), 4U);
}

TEST_F(TopSendersTest, AShareIsKeptUntilOthersWantIt) {
  for (int i = 0; i < 1000; ++i) send(0, 1000);
  EXPECT_TRUE(top_senders_.is_top_sender(0));
  for (int i = 0; i < 3000; ++i) send(1, 1000);
  EXPECT_TRUE(top_senders_.is_top_sender(0)) << "peer 1 had begun before peer 0 was quiet";
  EXPECT_TRUE(top_senders_.is_top_sender(1));
  for (int i = 0; i < 20'000; ++i) send(1, 1000);
  EXPECT_TRUE(top_senders_.is_top_sender(0)) << "nobody new wants it";
  for (int i = 0; i < 20'000; ++i) send(2, 1000);
  EXPECT_FALSE(top_senders_.is_top_sender(0));
  EXPECT_TRUE(top_senders_.is_top_sender(2));
}

TEST_F(TopSendersTest, NoMoreThanTheLimitTalk) {
  top_senders_.limit(3);
  for (int i = 0; i < 10'000; ++i) send(static_cast<std::uint32_t>(i % 40), 100);
  EXPECT_EQ(top_senders_.count(), 3U);
}

TEST_F(TopSendersTest, AForgottenPeerDoesNotTalk) {
  for (int i = 0; i < 1000; ++i) send(5, 100);
  ASSERT_TRUE(top_senders_.is_top_sender(5));
  top_senders_.forget(5);
  EXPECT_FALSE(top_senders_.is_top_sender(5));
  EXPECT_EQ(top_senders_.count(), 0U);
}

}  // namespace
}  // namespace wherry::mailbox
