// SPDX-License-Identifier: Apache-2.0
// Offers without bells (fabric/offer.hpp:Offer).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/open_descriptors.hpp"
#include "fabric/fabric.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::size_t kBytes = 8192;

Offer offer_with(bool bells) { return {.segment_bytes = kBytes, .bells = bells}; }

class NoBells : public ::testing::Test {
 protected:
  NoBells() : listener_(find("shm").listen(Address::parse("wherry://*:*"))) {}

  void meet(bool connectors_bells, bool acceptors_bells) {
    const auto connecting = find("shm").connect(listener_->local(), offer_with(connectors_bells));
    acceptor_ = listener_->try_accept(offer_with(acceptors_bells));
    connector_ = connecting->try_finish();
    ASSERT_NE(acceptor_, nullptr);
    ASSERT_NE(connector_, nullptr);
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> connector_, acceptor_;
};

TEST_F(NoBells, SaveTheirDescriptorsOnBothSides) {
  const std::size_t before = open_descriptors();
  meet(true, true);
  const std::size_t with = open_descriptors() - before;
  connector_.reset();
  acceptor_.reset();
  meet(false, false);
  EXPECT_EQ(open_descriptors() - before, with - 6) << "on each side two sets, and the companion";
}

TEST_F(NoBells, LeaveTheMemoryAndTheNewsOfADeathAsTheyAre) {
  meet(false, false);
  const std::uint64_t word = 7;
  EXPECT_EQ(connector_->put(64, std::as_bytes(std::span(&word, 1))), sizeof word);
  EXPECT_TRUE(connector_->signal(0, 8, Bell::data));
  EXPECT_EQ(std::memcmp(acceptor_->segment().data() + 64, &word, sizeof word), 0);
  EXPECT_EQ(*reinterpret_cast<const layout::Word*>(acceptor_->segment().data()), 8U);
  EXPECT_FALSE(acceptor_->peer_gone());
  connector_.reset();
  EXPECT_TRUE(acceptor_->peer_gone());
}

TEST_F(NoBells, OfOneSideLeaveTheOthersAtWork) {
  for (const bool connectors : {true, false}) {
    meet(connectors, !connectors);
    Connection& sleeper = connectors ? *connector_ : *acceptor_;
    Connection& other = connectors ? *acceptor_ : *connector_;
    for (const Bell bell : kBells) {
      sleeper.arm(bell);
      EXPECT_TRUE(other.announce(bell));
      EXPECT_EQ(sleeper.wait(bell, {}), Wake::rung);
      sleeper.disarm(bell);
      EXPECT_FALSE(sleeper.announce(bell)) << "nobody sleeps there";
    }
    connector_.reset();
    acceptor_.reset();
  }
}

/// A peer may claim to sleep although it has no bells: nothing is rung, and nothing else is.
TEST_F(NoBells, APeerThatSaysThatItSleepsIsNotRung) {
  meet(false, true);
  auto* page = reinterpret_cast<layout::BellPage*>(connector_->map() - layout::kBellPageBytes);
  page->waiters[index(Bell::data)].epoch.store(1);
  acceptor_->announce(Bell::data);
  EXPECT_EQ(acceptor_->wait(Bell::data, std::chrono::steady_clock::now()), Wake::timeout);
}

}  // namespace
}  // namespace wherry::fabric::shm
