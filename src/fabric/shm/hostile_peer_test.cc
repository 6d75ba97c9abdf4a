// SPDX-License-Identifier: Apache-2.0
// A peer that completes the handshake and then misuses everything that it was given. The watchdog detects a hang.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/shm/memory.hpp"
#include "fabric/shm/socket_names.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::fabric::shm {
namespace {

constexpr std::size_t kBytes = 8192;

UniqueFd connected_to(const Address& listener) {
  UniqueFd socket = make_socket("test", "");
  const SocketName name = socket_name(*listener.node, *listener.port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length), 0);
  return socket;
}

/// Its half of the handshake, by hand.
class RawPeer {
 public:
  explicit RawPeer(const Address& listener)
      : memory_(kBytes, nullptr), companion_(connected_to(listener)), socket_(connected_to(listener)) {
    EXPECT_EQ(send_companion(companion_.get(), kNumber), 0);
  }

  void say_hello(int memory = -1, std::uint64_t companion = kNumber, Bell by = Bell::data, std::size_t bytes = kBytes) {
    const layout::ShmHello hello{.magic = layout::kShmMagic,
                                 .version = layout::kShmVersion,
                                 .node = 0,
                                 .port = 0,
                                 .features = 0,
                                 .segment_bytes = bytes,
                                 .greeting = {},
                                 .shared_bytes = 0,
                                 .arena_bytes = 0,
                                 .companion = companion};
    const std::array descriptors{memory < 0 ? memory_.descriptor() : memory};
    EXPECT_EQ(send_packet(socket(by), hello, descriptors), 0);
  }
  /// The listener's half: its memory.
  Packet answer() {
    Packet packet;
    EXPECT_EQ(receive_packet(socket_.get(), packet), 0);
    return packet;
  }
  [[nodiscard]] layout::BellPage& page() const { return memory_.page(); }
  /// On which it rings the listener's bell, and is rung.
  [[nodiscard]] int socket(Bell bell = Bell::data) const { return (bell == Bell::data ? socket_ : companion_).get(); }

  static constexpr std::uint64_t kNumber = 4711;

 private:
  OwnMemory memory_;
  UniqueFd companion_;
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

  /// Where the peer says whether it sleeps: in the memory that it was sent.
  layout::Word& peers_word(const Packet& ours, Bell bell) {
    int error = 0;
    page_ = map_peers_memory(ours.descriptors[0].get(), kBytes, error);
    EXPECT_EQ(error, 0);
    return reinterpret_cast<layout::BellPage*>(page_.start())->waiters[index(bell)].epoch;
  }

  std::unique_ptr<Listener> listener_;
  RawPeer peer_;
  Mapping page_;
};

/// Until it cannot say more.
void fill(int socket) {
  while (::send(socket, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) continue;
}

TEST_F(HostilePeer, ThatRingsAsOftenAsItCanIsSilencedAndDoesNotStopUs) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  for (const Bell bell : kBells) {
    fill(peer_.socket(bell));
    connection->arm(bell);
    EXPECT_EQ(connection->wait(bell, {}), Wake::rung);
    while (connection->silence(bell)) continue;
    connection->arm(bell);
    EXPECT_EQ(connection->wait(bell, std::chrono::steady_clock::now()), Wake::timeout);
  }
  EXPECT_FALSE(connection->peer_gone());
}

/// It makes its own end blocking, too: that is no file of ours.
TEST_F(HostilePeer, ThatNeverHearsWhatIsRungDoesNotStopUsFromRinging) {
  const auto connection = connect();
  ASSERT_NE(connection, nullptr);
  const Packet ours = peer_.answer();
  for (const Bell bell : kBells) {
    ASSERT_EQ(::fcntl(peer_.socket(bell), F_SETFL, 0), 0);
    layout::Word& epoch = peers_word(ours, bell);
    for (std::uint64_t sleep = 1; sleep < 20'000; sleep += 2) {
      epoch.store(sleep);
      ASSERT_TRUE(connection->announce(bell));
    }
    // Its silence is its own loss: this side still rings itself.
    connection->notify_self(bell);
    EXPECT_EQ(connection->wait(bell, {}), Wake::rung);
  }
}

TEST_F(HostilePeer, ThatEndsOneDirectionOfOneSocketIsGoneForWhoSleepsThere) {
  for (const Bell bell : kBells) {
    RawPeer peer(listener_->local());
    peer.say_hello();
    const auto connection = accept();
    ASSERT_NE(connection, nullptr);
    ASSERT_EQ(::shutdown(peer.socket(bell), SHUT_WR), 0);
    connection->arm(bell);
    EXPECT_EQ(connection->wait(bell, {}), Wake::gone);
    EXPECT_TRUE(connection->peer_gone());
  }
}

TEST_F(HostilePeer, WithoutTheCompanionThatItNamesIsDropped) {
  for (const std::uint64_t wrong : {std::uint64_t{4712}, UINT64_MAX}) {
    RawPeer peer(listener_->local());
    peer.say_hello(-1, wrong);
    EXPECT_EQ(accept(), nullptr);
  }
  EXPECT_NE(connect(), nullptr);
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

TEST_F(HostilePeer, WhoseCompanionNamesItselfAsItsCompanionIsDroppedAndTheNextIsServed) {
  for (const bool departed : {false, true}) {
    RawPeer hostile(listener_->local());
    hostile.say_hello(-1, RawPeer::kNumber, Bell::space);
    const Offer offer{.segment_bytes = kBytes, .departed = departed};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(listener_->try_accept(offer), nullptr);
    RawPeer good(listener_->local());
    good.say_hello();
    EXPECT_NE(listener_->try_accept(offer), nullptr);
  }
}

// It waits, as one that has left messages and ended does where memory is short.
TEST_F(HostilePeer, WhoseMemoryIsTooLargeToMapHoldsUpNobody) {
  constexpr std::size_t kLarge = std::size_t{1} << 30;
  const UniqueFd large(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(large.get(), kLarge + layout::kBellPageBytes), 0);
  ASSERT_EQ(::fcntl(large.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  peer_.say_hello(large.get(), RawPeer::kNumber, Bell::data, kLarge);
  RawPeer good(listener_->local());
  good.say_hello();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{.rlim_cur = kLarge, .rlim_max = before.rlim_max};
  if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0 || ::setrlimit(RLIMIT_AS, &little) != 0)
    GTEST_SKIP() << "needs a limit of addresses";
  const auto connection = listener_->try_accept({.segment_bytes = kBytes, .departed = true});
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
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
  for (int i = 0; i < 100 && connection == nullptr; ++i) connection = accept();
  EXPECT_NE(connection, nullptr);
}

}  // namespace
}  // namespace wherry::fabric::shm
