// SPDX-License-Identifier: Apache-2.0
// A peer that speaks the handshake and then misuses everything it was given. A hang is what the watchdog is for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "fabric/event_bell.hpp"
#include "fabric/fabric.hpp"
#include "fabric/shm/memory.hpp"
#include "fabric/shm/rendezvous.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::size_t kBytes = 8192;

/// Its half of the handshake, by hand.
class RawPeer {
 public:
  explicit RawPeer(const Address& listener) : memory_(kBytes, nullptr), socket_(make_socket("test", "")) {
    const SocketName name = socket_name(*listener.node, *listener.port);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
  }

  void say_hello(int memory = -1, int bell = -1) {
    const layout::ShmHello hello{.magic = layout::kShmMagic,
                                 .version = layout::kShmVersion,
                                 .node = 0,
                                 .port = 0,
                                 .features = 0,
                                 .segment_bytes = kBytes,
                                 .greeting = {},
                                 .shared_bytes = 0,
                                 .arena_bytes = 0};
    const std::array descriptors{memory < 0 ? memory_.descriptor() : memory, bells_[0].descriptor(),
                                 bell < 0 ? bells_[1].descriptor() : bell};
    EXPECT_EQ(send_packet(socket_.get(), hello, descriptors), 0);
  }
  /// The listener's half: its memory and its bells.
  Packet answer() {
    Packet packet;
    EXPECT_EQ(receive_packet(socket_.get(), packet), 0);
    return packet;
  }
  [[nodiscard]] layout::BellPage& page() const { return memory_.page(); }
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] int bell(Bell which) const { return bells_[index(which)].descriptor(); }

 private:
  OwnMemory memory_;
  std::array<EventBell, 2> bells_;
  UniqueFd socket_;
};

class HostilePeer : public ::testing::Test {
 protected:
  HostilePeer() : listener_(find("shm").listen(Address::parse("wherry://*:*"))), peer_(listener_->local()) {}

  std::unique_ptr<Connection> accept() { return listener_->try_accept({.segment_bytes = kBytes, .greeting = {}}); }
  std::unique_ptr<Connection> connect() {
    peer_.say_hello();
    return accept();
  }

  std::unique_ptr<Listener> listener_;
  RawPeer peer_;
};

TEST_F(HostilePeer, ThatMakesOurBellBlockingDoesNotStopUs) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  const Packet ours = peer_.answer();
  ASSERT_EQ(::fcntl(ours.descriptors[1].get(), F_SETFL, 0), 0);
  connection->arm(Bell::data);
  connection->arm(Bell::data);
  EXPECT_FALSE(connection->silence(Bell::data));
}

/// Does with a bell what the kernel lets it, as fast as it can, and then stops in the middle of it.
void misuse(int bell, const std::atomic<bool>& stop) {
  constexpr std::array<itimerspec, 4> kTimes{{{{0, 0}, {0, 0}},
                                              {{0, 1}, {0, 1}},
                                              {{UINT32_MAX, 0}, {UINT32_MAX, 0}},
                                              {{0, 0}, {0, 1000}}}};
  for (std::size_t turn = 0; !stop; ++turn) {
    ::fcntl(bell, F_SETFL, turn % 3 == 0 ? O_NONBLOCK : 0);
    ::timerfd_settime(bell, 0, &kTimes[turn % kTimes.size()], nullptr);
    const std::uint64_t most = UINT64_MAX;
    ::write(bell, &most, sizeof most);
  }
}

TEST_F(HostilePeer, ThatMisusesBellsAsFastAsItCanStopsNoCallOfOurs) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  const Packet ours = peer_.answer();
  int error = 0;
  const Mapping page = map_peers_memory(ours.descriptors[0].get(), kBytes, error);
  ASSERT_EQ(error, 0);
  auto& asleep = reinterpret_cast<layout::BellPage*>(page.start())->sleepers[0].epoch;
  const TimeLimit limit(std::chrono::seconds(5));
  for (std::uint64_t round = 0; round < 200 && !limit.over(); ++round) {
    std::atomic<bool> stop{false};
    std::thread peers([&] { misuse(peer_.bell(Bell::data), stop); });
    std::thread ours_([&] { misuse(ours.descriptors[1].get(), stop); });
    for (std::uint64_t sleep = 0; sleep < 50; ++sleep) {
      asleep.store(1000 * round + 2 * sleep + 1);  // asleep again
      EXPECT_TRUE(connection->announce(Bell::data));
      connection->arm(Bell::data);
      connection->ring_own(Bell::data);
      (void)connection->silence(Bell::data);
    }
    stop = true;
    peers.join();
    ours_.join();
    asleep.store(1000 * round + 999);
    EXPECT_TRUE(connection->announce(Bell::data)) << "whatever was left";
  }
}

TEST_F(HostilePeer, WhoseBellIsAnEventfdOrAPipeIsDropped) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]), writing(pipe[1]), event(::eventfd(0, EFD_CLOEXEC));
  for (const int bell : {event.get(), writing.get(), reading.get()}) {
    RawPeer peer(listener_->local());
    peer.say_hello(-1, bell);
    EXPECT_EQ(accept(), nullptr);
  }
}

TEST_F(HostilePeer, ThatTalksOnTheLivenessSocketIsGoneForBothDirections) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  ASSERT_EQ(::send(peer_.socket(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(connection->peer_gone());
  for (const Bell bell : kBells) {
    pollfd entry{.fd = connection->descriptor(bell), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 1) << "the direction that did not look first hears of it too";
    connection->arm(bell);
    EXPECT_EQ(connection->wait(bell, {}), Wake::gone);
  }
}

/// Far more often than it takes to drop a fence.
void announce_to_one_who_is_awake(Connection& connection) {
  for (int i = 0; i < 1'000'000; ++i) ASSERT_FALSE(connection.announce(Bell::data));
}

TEST_F(HostilePeer, ThatIsNotInterruptedIsPublishedToWithFences) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  announce_to_one_who_is_awake(*connection);
  EXPECT_EQ(peer_.page().publishers[index(Bell::data)].unfenced.load(), 0U);
}

TEST_F(HostilePeer, ThatClaimsToPublishUnfencedDoesNotStopUsFromSleeping) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  const Packet ours = peer_.answer();
  int error = 0;
  const Mapping page = map_peers_memory(ours.descriptors[0].get(), kBytes, error);
  ASSERT_EQ(error, 0);
  reinterpret_cast<layout::BellPage*>(page.start())->publishers[index(Bell::data)].unfenced.store(UINT64_MAX);
  connection->arm(Bell::data);
  EXPECT_EQ(connection->wait(Bell::data, std::chrono::steady_clock::now()), Wake::timeout);
}

TEST(Unfenced, IsSaidToThePeerAndUnsaidWhenItSleeps) {
  if (!arch::takes_part_in_interrupts()) GTEST_SKIP() << "this kernel does not interrupt";
  const Offer offer{.segment_bytes = kBytes};
  const auto listener = find("shm").listen(Address::parse("wherry://*:*"));
  const auto connecting = find("shm").connect(listener->local(), offer);
  const auto sleeper = listener->try_accept(offer);
  const auto publisher = connecting->try_finish();
  ASSERT_NE(publisher, nullptr);
  const auto& page = *reinterpret_cast<layout::BellPage*>(sleeper->segment().data() - layout::kBellPageBytes);
  const auto said = [&](Bell bell) { return page.publishers[index(bell)].unfenced.load(); };
  EXPECT_EQ(said(Bell::data), 0U);
  announce_to_one_who_is_awake(*publisher);
  EXPECT_EQ(said(Bell::data), 1U);
  EXPECT_EQ(said(Bell::space), 0U);
  sleeper->arm(Bell::data);
  EXPECT_EQ(said(Bell::data), 1U) << "until the next publication";
  EXPECT_TRUE(publisher->announce(Bell::data));
  EXPECT_EQ(said(Bell::data), 0U);
}

TEST_F(HostilePeer, WhoseMemoryCannotBeTrustedIsDroppedAndTheNextIsServed) {
  const UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC));
  peer_.say_hello(unsealed.get());
  RawPeer good(listener_->local());
  good.say_hello();
  std::unique_ptr<Connection> connection;
  ASSERT_NO_THROW(connection = accept());
  EXPECT_NE(connection, nullptr);
}

TEST_F(HostilePeer, ThatSendsHugePagesIsDropped) {
  UniqueFd huge(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!huge.valid()) GTEST_SKIP() << "this kernel has no huge pages";
  ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  peer_.say_hello(huge.get());
  std::unique_ptr<Connection> connection;
  EXPECT_NO_THROW(connection = accept());
  EXPECT_EQ(connection, nullptr);
}

TEST_F(HostilePeer, WhoFillsTheListenerWithSilentConnectorsKeepsNobodyOut) {
  constexpr int kAllThatMayWait = 4096;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 3 * kAllThatMayWait) GTEST_SKIP() << "too few descriptors (ulimit -Hn) for both sides";
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  const SocketName name = socket_name(*listener_->local().node, *listener_->local().port);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < kAllThatMayWait; ++i) {
    silent.push_back(make_socket("test", ""));
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
    // Before the kernel's own queue is full.
    if (i % 100 == 0) {
      EXPECT_EQ(accept(), nullptr);
    }
  }
  RawPeer good(listener_->local());
  good.say_hello();
  std::unique_ptr<Connection> connection;
  for (int i = 0; i < 10 && connection == nullptr; ++i) connection = accept();
  EXPECT_NE(connection, nullptr);
}

}  // namespace
}  // namespace wherry::fabric::shm
