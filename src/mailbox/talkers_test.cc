// SPDX-License-Identifier: Apache-2.0
#include "mailbox/talkers.hpp"

#include <gtest/gtest.h>

#include <random>

namespace wherry::mailbox {
namespace {

constexpr std::uint32_t kPeers = 48;

class TalkersTest : public ::testing::Test {
 protected:
  TalkersTest() { talkers_.reserve(kPeers); }
  void send(std::uint32_t peer, std::size_t bytes) {
    if (talkers_.on_piece(peer, bytes) && talkers_.end_period()) ++changes_;
  }
  Talkers talkers_;
  int changes_ = 0;
};

TEST_F(TalkersTest, TwoNeighboursAreSeenWithinAThousandPiecesAmongRareOthers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    send(i % 64 == 0 ? static_cast<std::uint32_t>(random() % kPeers) : 1 + 2 * static_cast<std::uint32_t>(i % 2), 4096);
  }
  EXPECT_TRUE(talkers_.is_talker(1));
  EXPECT_TRUE(talkers_.is_talker(3));
  EXPECT_LE(talkers_.count(), 6U);
}

TEST_F(TalkersTest, ASettledPatternChangesNothingMore) {
  std::mt19937_64 random(2);
  const auto exchange = [&](int pieces) {
    for (int i = 0; i < pieces; ++i) send(static_cast<std::uint32_t>(random() % 4), random() % 8192);
  };
  exchange(1000);
  const int before = changes_;
  exchange(1'000'000);
  EXPECT_EQ(changes_, before);
  EXPECT_EQ(talkers_.count(), 4U);
}

TEST_F(TalkersTest, AShareIsKeptUntilOthersWantIt) {
  for (int i = 0; i < 1000; ++i) send(0, 1000);
  EXPECT_TRUE(talkers_.is_talker(0));
  for (int i = 0; i < 3000; ++i) send(1, 1000);
  EXPECT_TRUE(talkers_.is_talker(0)) << "peer 1 had begun before peer 0 was quiet";
  EXPECT_TRUE(talkers_.is_talker(1));
  for (int i = 0; i < 20'000; ++i) send(1, 1000);
  EXPECT_TRUE(talkers_.is_talker(0)) << "nobody new wants it";
  for (int i = 0; i < 20'000; ++i) send(2, 1000);
  EXPECT_FALSE(talkers_.is_talker(0));
  EXPECT_TRUE(talkers_.is_talker(2));
}

TEST_F(TalkersTest, NoMoreThanTheLimitTalk) {
  talkers_.limit(3);
  for (int i = 0; i < 10'000; ++i) send(static_cast<std::uint32_t>(i % 40), 100);
  EXPECT_EQ(talkers_.count(), 3U);
}

TEST_F(TalkersTest, AForgottenPeerDoesNotTalk) {
  for (int i = 0; i < 1000; ++i) send(5, 100);
  ASSERT_TRUE(talkers_.is_talker(5));
  talkers_.forget(5);
  EXPECT_FALSE(talkers_.is_talker(5));
  EXPECT_EQ(talkers_.count(), 0U);
}

}  // namespace
}  // namespace wherry::mailbox
