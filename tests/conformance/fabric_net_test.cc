// SPDX-License-Identifier: Apache-2.0
// What a network may do to a connection, and what the contract promises all the same. On the in-process fabrics that
// behave as a network.
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "arch/pause.hpp"
#include "base/child_process.hpp"
#include "fabric/inproc/net_end.hpp"
#include "fabric/service_park.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/soak.hpp"
#include "tests/conformance/fabric_pair.hpp"
#include "tests/conformance/fabric_play.hpp"

namespace wherry::conformance {
namespace {

using fabric::inproc::NetEnd;

constexpr std::uint64_t kPayload = 128;  // where it lies; words before it

class FabricNet : public FabricTest {
 protected:
  static NetEnd& net(const std::unique_ptr<Connection>& end) { return dynamic_cast<NetEnd&>(*end); }
};

/// On every fabric whose waiters make progress themselves.
class FabricProgress : public FabricTest {};

/// Sends bytes and a word, closes, and returns whether the other side has both: at once if it `flushes`, else once it
/// has heard of the close.
bool arrives(Ends ends, std::uint64_t round, bool flushes) {
  const Bytes source(*ends.connector, 1 + round % 3000);
  fill(source, round);
  EXPECT_TRUE(ends.connector->put_and_signal(kPayload, source, 0, round, Bell::data));
  EXPECT_TRUE(!flushes || ends.connector->flush({}).ok());
  ends.connector.reset();
  if (!flushes) wait_for_end(*ends.acceptor);
  return word(*ends.acceptor, 0).load(std::memory_order_acquire) == round &&
         filled(ends.acceptor->segment().subspan(kPayload, source.size()), round);
}

TEST_P(FabricNet, AFlushBeforeACloseLosesNothing) {
  const std::uint64_t rounds = 10'000;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    ASSERT_TRUE(arrives(connect_pair(), round, true)) << round;
  }
}

TEST_P(FabricNet, ACloseWithoutAFlushLosesWhatWasTaken) {
  int lost = 0;
  for (std::uint64_t round = 1; round <= 100; ++round) lost += arrives(connect_pair(), round, false) ? 0 : 1;
  EXPECT_GT(lost, 0);
}

TEST_P(FabricNet, APutIsNeverSeenInPartOnceItsWordIs) {
  constexpr std::size_t kMost = 200'000;
  const std::uint64_t rounds = soaking() ? kMost : 1'500;
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 50 * kPage});
  std::vector<std::size_t> sizes;
  std::mt19937_64 random(1);
  // Every size up to 1000, and others up to the largest; every size in `make soak`.
  for (std::uint64_t round = 0; round < rounds; ++round)
    sizes.push_back(round < 1000 || soaking() ? round + 1 : 1 + random() % kMost);
  sizes.back() = kMost;
  std::thread receiver([&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      while (word(*ends.acceptor, 0).load(std::memory_order_acquire) < round) ends.acceptor->progress(Bell::data);
      ASSERT_TRUE(filled(ends.acceptor->segment().subspan(kPayload, sizes[round - 1]), round)) << round;
      ASSERT_TRUE(ends.acceptor->signal(64, round, Bell::space));
    }
  });
  const Bytes source(*ends.connector, kMost);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto bytes = source.span().first(sizes[round - 1]);
    fill(bytes, round);
    ASSERT_TRUE(ends.connector->put_and_signal(kPayload, bytes, 0, round, Bell::data));
    ASSERT_EQ(await(*ends.connector, 64, round, Bell::space), Wake::rung);
  }
  receiver.join();
}

/// Looks at a word while `write(value)` writes all zeros and all ones to it in turn. Returns how often it was neither.
template <class Write>
int halves_seen(Connection& at, Write&& write) {
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < 3000; ++i) write(i % 2 == 0 ? ~std::uint64_t{0} : std::uint64_t{0});
    over = true;
  });
  int halves = 0;
  while (!over) {
    const std::uint64_t seen = word(at, 0).load(std::memory_order_relaxed);
    halves += seen != 0 && seen != ~std::uint64_t{0} ? 1 : 0;
  }
  writer.join();
  return halves;
}

TEST_P(FabricNet, AWordThatAPutCarriesIsTorn) {
#if WHERRY_THREAD_SANITIZER
  GTEST_SKIP() << "it is a race on purpose";
#endif
  const Ends ends = connect_pair();
  const Bytes source(*ends.connector, sizeof(std::uint64_t));
  EXPECT_GT(halves_seen(*ends.acceptor,
                        [&](std::uint64_t value) {
                          std::memcpy(source.data(), &value, sizeof value);
                          EXPECT_TRUE(put_all(*ends.connector, 0, source));
                          EXPECT_TRUE(ends.connector->flush({}).ok());
                        }),
            0);
}

TEST_P(FabricNet, AWordOfASignalIsNot) {
  const Ends ends = connect_pair();
  const Bytes source(*ends.connector, 64);
  int count = 0;
  const auto write = [&](std::uint64_t value) {
    EXPECT_TRUE(++count % 3 == 0 ? ends.connector->put_and_signal(kPayload, source, 0, value, Bell::data)
                                 : ends.connector->signal(0, value, Bell::data));
    EXPECT_TRUE(ends.connector->flush({}).ok());
  };
  EXPECT_EQ(halves_seen(*ends.acceptor, write), 0);
}

TEST_P(FabricNet, APutFromMemoryThatIsNotRegisteredBreaksTheConnection) {
  std::vector<std::byte> plain(100);
  for (const bool puts : {true, false}) {
    const Ends ends = connect_pair();
    if (puts) {
      EXPECT_EQ(ends.connector->put(0, plain), 0U);
    } else {
      EXPECT_FALSE(ends.connector->get(plain, 0));
    }
    ASSERT_TRUE(ends.connector->peer_gone());
    EXPECT_EQ(wait_for_end(*ends.acceptor), Wake::gone);
  }
}

TEST_P(FabricNet, MemoryIsRegisteredAsLongAsItsBuffer) {
  const Ends ends = connect_pair();
  auto buffer = ends.connector->buffer(100);
  const std::span bytes(buffer.get(), 100);
  EXPECT_EQ(ends.connector->put(0, bytes), 100U);
  EXPECT_TRUE(ends.connector->flush({}).ok());
  EXPECT_EQ(ends.connector->put(0, ends.connector->segment().first(100)), 100U);
  EXPECT_TRUE(ends.connector->flush({}).ok());
  EXPECT_FALSE(ends.connector->peer_gone());
}

TEST_P(FabricNet, ACutCableDeliversNothingAndAFlushEndsAtItsDeadline) {
  const Ends ends = connect_pair();
  net(ends.connector).cut(kTimeout);
  ASSERT_TRUE(ends.connector->signal(0, 1, Bell::data));
  EXPECT_EQ(ends.connector->flush(in(20ms)).error, ETIMEDOUT);
  EXPECT_EQ(word(*ends.acceptor, 0).load(std::memory_order_acquire), 0U);
  EXPECT_FALSE(ends.connector->peer_gone());
  EXPECT_FALSE(ends.acceptor->peer_gone());
}

TEST_P(FabricNet, ACableThatIsHealedWithinTheLimitHasLostNothing) {
  const Ends ends = connect_pair({.segment_bytes = kPage}, {.segment_bytes = 300 * kPage});
  const Bytes source(*ends.connector, 299 * kPage);
  fill(source, 1);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    net(ends.connector).cut(kTimeout);
    std::thread healer([&] {
      std::this_thread::sleep_for(5ms);
      net(ends.acceptor).heal();
    });
    // More than the queue takes: sleeps on the bell for space until the cable is healed.
    ASSERT_TRUE(put_all(*ends.connector, kPage, source));
    ASSERT_TRUE(ends.connector->signal(0, round, Bell::data));
    EXPECT_EQ(await(*ends.acceptor, 0, round, Bell::data), Wake::rung);
    EXPECT_TRUE(filled(ends.acceptor->segment().subspan(kPage), 1));
    std::ranges::fill(ends.acceptor->segment().subspan(kPage), std::byte{});
    healer.join();
  }
}

TEST_P(FabricNet, ACableThatIsCutAndHealedInMidTransferLosesNothing) {
  const Ends ends = connect_pair(Rounds::offer(), Rounds::offer());
  std::atomic<bool> over{false};
  std::thread cutter([&] {
    while (!over) {
      net(ends.connector).cut(kTimeout);
      std::this_thread::sleep_for(300us);
      net(ends.connector).heal();
      std::this_thread::sleep_for(300us);
    }
  });
  std::thread receiver([&] { Rounds::receive(*ends.acceptor, 1); });
  Rounds::send(*ends.connector, 1);
  receiver.join();
  over = true;
  cutter.join();
}

TEST_P(FabricNet, ACableThatStaysCutIsADeathForBothSides) {
  for (const Bell bell : fabric::kBells) {
    const Ends ends = connect_pair();
    ASSERT_TRUE(ends.connector->signal(0, 1, Bell::data));
    ASSERT_TRUE(ends.connector->flush({}).ok());
    net(ends.connector).cut(5ms);
    ASSERT_TRUE(ends.connector->signal(0, 2, Bell::data));
    std::thread other([&] { EXPECT_EQ(wait_for_end(*ends.acceptor, bell), Wake::gone); });
    EXPECT_EQ(wait_for_end(*ends.connector, bell), Wake::gone);
    other.join();
    net(ends.connector).heal();
    EXPECT_TRUE(ends.connector->peer_gone());
    EXPECT_TRUE(ends.acceptor->peer_gone());
    EXPECT_FALSE(ends.connector->signal(0, 3, Bell::data));
    EXPECT_EQ(ends.connector->flush({}).error, ECONNRESET);
    EXPECT_EQ(word(*ends.acceptor, 0).load(std::memory_order_acquire), 1U);
  }
}

/// A peer that sends a number again and again, each time it is answered.
class Echo {
 public:
  Echo(Connection& end, std::uint64_t rounds)
      : thread_([&end, rounds] {
          for (std::uint64_t round = 1; round <= rounds; ++round) {
            EXPECT_TRUE(end.signal(0, round, Bell::data));
            EXPECT_EQ(await(end, 64, round, Bell::space), Wake::rung);
          }
        }) {}
  ~Echo() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST_P(FabricProgress, TheServiceIsParkedWhileAWaiterDrivesTheConnection) {
  using Clock = fabric::ServicePark::Clock;
  constexpr auto kLonger = 600us;  // than the service thread sleeps before it delivers
  const Ends ends = connect_pair();
  Connection& end = *ends.acceptor;
  const auto at = [&end] { return word(end, 0).load(std::memory_order_acquire); };
  int seen = 0;
  for (std::uint64_t round = 1; round <= 300 && seen < 20; ++round) {
    const auto leased = Clock::now();
    end.progress(Bell::data);
    ASSERT_TRUE(ends.connector->signal(0, round, Bell::data));
    while (Clock::now() < leased + kLonger) arch::pause();
    const std::uint64_t early = at();
    // Where this thread was kept from its core the lease has run out.
    if (Clock::now() < leased + fabric::ServicePark::kLease) {
      EXPECT_EQ(early, round - 1);
      ++seen;
    }
    end.end_progress(Bell::data);
    while (at() < round) std::this_thread::yield();
  }
  if (seen == 0) GTEST_SKIP() << "this thread was kept from its core each time";
}

TEST_P(FabricProgress, AWaiterThatIsStoppedDoesNotSilenceTheService) {
  const Ends ends = connect_pair();
  for (std::uint64_t round = 1; round <= 20; ++round) {
    ends.acceptor->progress(Bell::data);  // and no more
    ASSERT_TRUE(ends.connector->signal(0, round, Bell::data));
    while (word(*ends.acceptor, 0).load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
}

TEST_P(FabricProgress, WhatAWaiterLeavesBehindTheServiceDelivers) {
  const std::uint64_t rounds = soaking() ? 200'000 : 500;
  const Ends ends = connect_pair();
  Connection& end = *ends.acceptor;
  const Echo echo(*ends.connector, rounds);
  std::mt19937_64 random(2);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto arrived = [&] { return word(end, 0).load(std::memory_order_acquire) >= round; };
    for (auto looks = random() % 30; looks > 0 && !arrived(); --looks) end.progress(Bell::data);
    if (random() % 2 == 0) end.end_progress(Bell::data);
    // Sleeps, which ends it, too.
    ASSERT_EQ(await(end, 0, round, Bell::data), Wake::rung);
    ASSERT_TRUE(end.signal(64, round, Bell::space));
  }
}

TEST_P(FabricNet, AForkedChildsCopyIsDead) {
  const Ends ends = connect_pair();
  Connection& connection = *ends.connector;
  const auto child = [&] {
    bool dead = connection.peer_gone() && connection.put(0, connection.segment()) == 0 &&
                !connection.signal(0, 1, Bell::data) && !connection.get(connection.segment(), 0) &&
                connection.flush({}).error == ECONNRESET;
    connection.arm(Bell::data);
    dead = dead && connection.wait(Bell::data, {}) == Wake::gone;
    connection.disarm(Bell::data);
    return dead;
  };
  EXPECT_EQ(Child(child).wait(), 0);
  EXPECT_TRUE(connection.signal(0, 1, Bell::data));
  EXPECT_EQ(await(*ends.acceptor, 0, 1, Bell::data), Wake::rung);
}

WHERRY_ON_FABRICS(FabricNet, network_fabrics_under_test());
WHERRY_ON_FABRICS(FabricProgress, progressing_fabrics_under_test());

}  // namespace
}  // namespace wherry::conformance
