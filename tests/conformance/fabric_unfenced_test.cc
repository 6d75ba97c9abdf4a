// SPDX-License-Identifier: Apache-2.0
// Load/store fabrics: to a side that was awake at many announcements in a row the peer publishes without a fence, and
// that side interrupts it when it sleeps after all.
#include <random>
#include <thread>

#include "arch/pause.hpp"
#include "tests/common/time_limit.hpp"
#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {
namespace {

class FabricUnfenced : public FabricTest {
 protected:
  /// More announcements than any fence threshold that is tested on.
  static std::uint64_t many() { return 200 * std::uint64_t{std::thread::hardware_concurrency()}; }
};

TEST_P(FabricUnfenced, OneSleepAfterManyPublicationsIsRungOnce) {
  if (!GetParam().rings_exactly) GTEST_SKIP() << "wakes spuriously on purpose";
  const Ends ends = connect_pair();
  if (ends.connector->map() == nullptr) GTEST_SKIP() << "a put fabric signals";
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < many(); ++i) ASSERT_FALSE(ends.connector->announce(Bell::data));
    ends.acceptor->arm(Bell::data);
    EXPECT_TRUE(ends.connector->announce(Bell::data));
    EXPECT_FALSE(ends.connector->announce(Bell::data));
    EXPECT_EQ(ends.acceptor->wait(Bell::data, in(kTimeout)), Wake::rung);
    ends.acceptor->disarm(Bell::data);
  }
}

/// The sleeper arms right before the last of many publications, at all moments relative to it.
TEST_P(FabricUnfenced, TheLastOfManyPublicationsWakesWhoeverSleepsForIt) {
  const Ends ends = connect_pair();
  if (ends.connector->map() == nullptr) GTEST_SKIP() << "a put fabric signals";
  const std::uint64_t rounds = GetParam().rounds / 10;
  const std::uint64_t each = many();
  constexpr std::uint64_t kEnd = UINT64_MAX;
  std::thread publisher([&] {
    std::minstd_rand random(1);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      while (word(*ends.connector, 0).load() < round) std::this_thread::yield();
      if (word(*ends.connector, 0).load() == kEnd) return;
      for (std::uint64_t i = 1; i < each; ++i) publish(*ends.connector, 0, round * each + i, Bell::data);
      for (std::uint64_t i = random() % 50; i > 0; --i) arch::pause();
      publish(*ends.connector, 0, (round + 1) * each, Bell::data);
    }
  });
  const auto& own = word(*ends.acceptor, 0);
  const TimeLimit limit(2s);
  for (std::uint64_t round = 0; round < rounds && !limit.over(); ++round) {
    while (own.load() + 1 < (round + 1) * each) std::this_thread::yield();
    ASSERT_EQ(await(*ends.acceptor, 0, (round + 1) * each, Bell::data), Wake::rung) << "lost in round " << round;
    publish(*ends.acceptor, 0, round + 1, Bell::data);
  }
  publish(*ends.acceptor, 0, kEnd, Bell::data);
  publisher.join();
}

WHERRY_ON_EVERY_FABRIC(FabricUnfenced);

}  // namespace
}  // namespace wherry::conformance
