// SPDX-License-Identifier: Apache-2.0
// The two sides as two processes, and what becomes of one when the other is killed.
#include <random>
#include <thread>

#include "tests/conformance/child_process.hpp"
#include "tests/conformance/fabric_pair.hpp"
#include "tests/conformance/fabric_play.hpp"

namespace wherry::conformance {
namespace {

class FabricProcess : public FabricTest {
 protected:
  /// Connects to `address`, which the parent listens on.
  [[nodiscard]] std::unique_ptr<Connection> connect(const Address& address, const Offer& offer) const {
    return finish(*tested().connect(address, offer));
  }
};

TEST_P(FabricProcess, EachSideKnowsWhoTheOtherIs) {
  const auto listener = listen();
  const pid_t parent = ::getpid();
  ChildProcess child(there([&] {
    const auto connection = connect(listener->local(), {.segment_bytes = 2 * kPage, .greeting = greeting_of(1)});
    EXPECT_EQ(connection->peer().pid, GetParam().vouches ? parent : 0);
    EXPECT_EQ(connection->peer_greeting(), greeting_of(2));
    EXPECT_EQ(connection->remote_bytes(), 3 * kPage);
    EXPECT_EQ(await(*connection, 0, 1, Bell::data), Wake::rung);
  }));
  const auto connection = accept(*listener, {.segment_bytes = 3 * kPage, .greeting = greeting_of(2)});
  EXPECT_EQ(connection->peer().pid, GetParam().vouches ? child.pid() : 0);
  EXPECT_EQ(connection->peer().uid, GetParam().vouches ? ::geteuid() : UINT32_MAX);
  EXPECT_EQ(connection->peer_greeting(), greeting_of(1));
  EXPECT_EQ(connection->remote_bytes(), 2 * kPage);
  EXPECT_TRUE(connection->signal(0, 1, Bell::data));
  EXPECT_EQ(child.exit_status(), 0);
}

TEST_P(FabricProcess, AProcessListensOnTheNodeItIs) {
  const auto listener = listen();
  ChildProcess child(there([&] {
    const ScopedEnvironment node("WHERRY_NODE", "7");
    const auto own = tested().listen(Address{.fabric = {}, .node = 7, .port = {}});
    const auto connection = connect(listener->local(), {.segment_bytes = kPage});
    connection->signal(0, *own->local().port, Bell::data);
    EXPECT_NE(accept(*own, {.segment_bytes = kPage}), nullptr);
  }));
  const auto connection = accept(*listener, {.segment_bytes = kPage});
  EXPECT_EQ(connection->peer().address.node, 7);
  ASSERT_EQ(await(*connection, 0, 1, Bell::data), Wake::rung);
  const auto port = static_cast<std::uint16_t>(word(*connection, 0).load());
  EXPECT_NE(connect({.fabric = {}, .node = 7, .port = port}, {.segment_bytes = kPage}), nullptr);
  EXPECT_EQ(child.exit_status(), 0);
}

TEST_P(FabricProcess, EveryPutBeforeASignalIsVisibleWithIt) {
  const auto listener = listen();
  ChildProcess child(there([&] { Rounds::send(*connect(listener->local(), Rounds::offer()), 3); }));
  Rounds::receive(*accept(*listener, Rounds::offer()), 3);
  EXPECT_EQ(child.exit_status(), 0);
}

TEST_P(FabricProcess, NoWakeUpIsLost) {
  for (const auto by : {PingPong::By::wait, PingPong::By::descriptor}) {
    const auto listener = listen();
    ChildProcess child(there(
        [&] { PingPong::serve(*connect(listener->local(), {.segment_bytes = kPage}), GetParam().rounds / 2, by); }));
    PingPong::answer(*accept(*listener, {.segment_bytes = kPage}), GetParam().rounds / 2, by);
    EXPECT_EQ(child.exit_status(), 0);
  }
}

TEST_P(FabricProcess, CallersMemoryIsReachedFromTheOtherProcess) {
  const auto listener = listen();
  const CallersPages pages(64 * kPage);
  fill(pages.bytes(), 1);
  ChildProcess child(there([&] {
    const auto connection = connect(listener->local(), {.segment_bytes = kPage});
    std::vector<std::byte> bytes(64 * kPage);
    EXPECT_TRUE(connection->get(bytes, 0) && connection->flush({}).ok());
    EXPECT_TRUE(filled(bytes, 1));
    fill(bytes, 2);
    EXPECT_TRUE(put_all(*connection, 0, bytes) && connection->flush({}).ok());
  }));
  EXPECT_EQ(wait_for_end(*accept(*listener, pages.offer())), Wake::gone);
  EXPECT_EQ(child.exit_status(), 0);
  EXPECT_TRUE(filled(pages.bytes(), 2));
}

constexpr std::size_t kSlots = 8, kSlotBytes = 16 * kPage;

/// Publishes slot after slot until it is killed.
void publish_for_ever(Connection& connection) {
  std::vector<std::byte> bytes(kSlotBytes);
  for (std::uint64_t round = 1;; ++round) {
    fill(bytes, round);
    put_all(connection, kPage + round % kSlots * kSlotBytes, bytes);
    (void)connection.flush({});
    publish(connection, 0, round, Bell::data);
  }
}

TEST_P(FabricProcess, WhatAKilledPeerPublishedIsVisibleWhenItsDeathIs) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    const auto listener = listen();
    ChildProcess child(there([&] { publish_for_ever(*connect(listener->local(), {.segment_bytes = kPage})); }));
    const auto connection = accept(*listener, {.segment_bytes = kPage + kSlots * kSlotBytes});
    ASSERT_EQ(await(*connection, 0, 1, Bell::data), Wake::rung);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ::kill(child.pid(), SIGKILL);
    ASSERT_EQ(wait_for_end(*connection), Wake::gone);
    const std::uint64_t last = word(*connection, 0).load(std::memory_order_acquire);
    for (std::uint64_t round = last - std::min<std::uint64_t>(last, kSlots - 1) + 1; round <= last; ++round) {
      const std::size_t slot = kPage + round % kSlots * kSlotBytes;
      EXPECT_TRUE(filled(connection->segment().subspan(slot, kSlotBytes), round)) << round << " of " << last;
    }
  }
}

TEST_P(FabricProcess, AKilledPeerIsReportedOnBothDescriptors) {
  const auto listener = listen();
  ChildProcess child(there([&] { wait_for_end(*connect(listener->local(), {.segment_bytes = kPage})); }));
  const auto connection = accept(*listener, {.segment_bytes = kPage});
  for (const Bell bell : fabric::kBells) {
    connection->arm(bell);
    EXPECT_TRUE(!GetParam().rings_exactly || !readable(connection->descriptor(bell), 0ms));
  }
  child.kill();
  for (const Bell bell : fabric::kBells) EXPECT_TRUE(readable(connection->descriptor(bell)));
  EXPECT_TRUE(connection->peer_gone());
  EXPECT_FALSE(connection->signal(0, 1, Bell::data));
}

TEST_P(FabricProcess, AKilledConnectorIsDroppedOrSeenToBeGone) {
  const auto listener = listen();
  ChildProcess child(there([&] {
    const auto connecting = tested().connect(listener->local(), {.segment_bytes = kPage});
    ::pause();
  }));
  ASSERT_TRUE(readable(listener->descriptor()));
  child.kill();
  if (const auto connection = listener->try_accept({.segment_bytes = kPage})) {
    EXPECT_EQ(wait_for_end(*connection), Wake::gone);
  }
  EXPECT_EQ(listener->try_accept({.segment_bytes = kPage}), nullptr);
}

TEST_P(FabricProcess, AKilledListenerRefusesAndLeavesItsPortFree) {
  const auto way_back = listen();
  ChildProcess child(there([&] {
    const auto own = listen();
    const auto connection = connect(way_back->local(), {.segment_bytes = kPage});
    connection->signal(0, *own->local().port, Bell::data);
    ::pause();
  }));
  const auto connection = accept(*way_back, {.segment_bytes = kPage});
  ASSERT_EQ(await(*connection, 0, 1, Bell::data), Wake::rung);
  const Address address{.fabric = {},
                        .node = connection->peer().address.node,
                        .port = static_cast<std::uint16_t>(word(*connection, 0).load())};
  const auto waiting = tested().connect(address, {.segment_bytes = kPage});
  const bool is_own_host = !GetParam().between_hosts;  // another host's ports are not this one's
  EXPECT_EQ(is_own_host ? error_of([&] { tested().listen(address); }) : EADDRINUSE, EADDRINUSE);
  child.kill();
  EXPECT_TRUE(readable(waiting->descriptor()));
  const int error = error_of([&] { finish(*waiting); });
  EXPECT_TRUE(error == ECONNREFUSED || error == ECONNRESET) << error;
  EXPECT_EQ(is_own_host ? tested().listen(address)->local().port : address.port, address.port);
}

TEST_P(FabricProcess, CallersMemoryIsTheCallersAfterTheOtherWasKilled) {
  const auto listener = listen();
  const CallersPages pages(16 * kPage);
  ChildProcess child(there([&] {
    const auto connection = connect(listener->local(), {.segment_bytes = kPage});
    std::vector<std::byte> bytes(16 * kPage);
    fill(bytes, 1);
    put_all(*connection, 0, bytes);
    (void)connection->flush({});
    ::raise(SIGKILL);
  }));
  auto connection = accept(*listener, pages.offer());
  EXPECT_EQ(wait_for_end(*connection), Wake::gone);
  connection.reset();
  EXPECT_TRUE(filled(pages.bytes(), 1));
}

WHERRY_ON_PROCESS_FABRICS(FabricProcess);

}  // namespace
}  // namespace wherry::conformance
