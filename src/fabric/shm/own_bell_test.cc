// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/own_bell.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "base/unique_fd.hpp"

namespace wherry::fabric::shm {
namespace {

/// More rings than a socket's buffer holds.
constexpr int kMany = 2000;

class PeerBells : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    own_.reset(ends[0]);
    peers_.reset(ends[1]);
  }

  /// How many rings the peer finds.
  int take_all() {
    std::byte anything{};
    int taken = 0;
    while (::recv(peers_.get(), &anything, sizeof anything, MSG_DONTWAIT) > 0) ++taken;
    return taken;
  }

  UniqueFd own_, peers_;
  PeerBell bell_;
};

TEST_F(PeerBells, RingEachTimeThatThePeerHasTakenTheLastRing) {
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(bell_.notify(own_.get()));
    ASSERT_EQ(take_all(), 1) << "after " << i << " rings";
  }
}

TEST_F(PeerBells, RingWithAFewRingsLeftOver) {
  ASSERT_TRUE(bell_.notify(own_.get()));
  ASSERT_TRUE(bell_.notify(own_.get()));
  std::byte anything{};
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(bell_.notify(own_.get()));
    ASSERT_EQ(::recv(peers_.get(), &anything, sizeof anything, MSG_DONTWAIT), 1) << "after " << i << " rings";
  }
  EXPECT_EQ(take_all(), 2);
}

TEST_F(PeerBells, LeaveRoomForOwnRingsBesideAPeerThatTakesNone) {
  OwnBell own;
  own.listen_to(own_.get(), true);
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(bell_.notify(own_.get()));
  own.notify();
  pollfd polled{.fd = own.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 1);
  EXPECT_EQ(own.silence(), OwnBell::Heard::notification);
}

TEST_F(PeerBells, RingAgainOnceThePeerTakesTheRings) {
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(bell_.notify(own_.get()));
  EXPECT_GT(take_all(), 0);
  ASSERT_TRUE(bell_.notify(own_.get()));
  EXPECT_EQ(take_all(), 1);
}

}  // namespace
}  // namespace wherry::fabric::shm
