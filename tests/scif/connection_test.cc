// SPDX-License-Identifier: Apache-2.0
// scif_open, listen, connect, accept, close, get_fd, get_nodeIDs.
#include <sys/epoll.h>
#include <sys/select.h>

#include <atomic>
#include <thread>

#include "tests/scif/common.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifOpen : public Scif {};
class ScifListen : public Scif {};
class ScifConnect : public Scif {};
class ScifAccept : public Scif {};
class ScifClose : public Scif {};
class ScifNodes : public Scif {};

TEST_F(ScifOpen, GivesADescriptorWithCloseOnExec) {
  const Epd epd;
  EXPECT_NE(::fcntl(epd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(::fcntl(epd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(ScifOpen, TheDescriptorMadeByAcceptHasNoCloseOnExec) {
  const Pair pair;
  EXPECT_EQ(::fcntl(pair.acceptor, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ScifOpen, GetFdReturnsTheEndpointItselfAndNeverFails) {
  const Epd epd;
  EXPECT_EQ(scif_get_fd(epd), epd);
  EXPECT_EQ(scif_get_fd(-5), -5);
}

TEST_F(ScifOpen, AWrongDescriptorGivesEbadfAndSomethingElsesEnotty) {
  scif_portID id{};
  scif_epd_t made = -1;
  char byte = 0;
  int mark = 0;
  int other[2];
  ASSERT_EQ(::pipe(other), 0);
  for (const auto& [epd, error] : {std::pair(-1, EBADF), std::pair(100'000, EBADF), std::pair(other[0], ENOTTY)}) {
    EXPECT_FAILS(error, scif_bind(epd, 0));
    EXPECT_FAILS(error, scif_listen(epd, 1));
    EXPECT_FAILS(error, scif_connect(epd, &id));
    EXPECT_FAILS(error, scif_accept(epd, &id, &made, 0));
    EXPECT_FAILS(error, scif_send(epd, &byte, 1, 0));
    EXPECT_FAILS(error, scif_recv(epd, &byte, 1, 0));
    EXPECT_FAILS(error, scif_register(epd, nullptr, 4096, 0, SCIF_PROT_READ, 0));
    EXPECT_FAILS(error, scif_unregister(epd, 0, 4096));
    EXPECT_FAILS(error, scif_writeto(epd, 0, 1, 0, 0));
    EXPECT_FAILS(error, scif_readfrom(epd, 0, 1, 0, 0));
    EXPECT_FAILS(error, scif_vwriteto(epd, &byte, 1, 0, 0));
    EXPECT_FAILS(error, scif_vreadfrom(epd, &byte, 1, 0, 0));
    EXPECT_FAILS(error, scif_fence_mark(epd, SCIF_FENCE_INIT_SELF, &mark));
    EXPECT_FAILS(error, scif_fence_wait(epd, 0));
    EXPECT_FAILS(error, scif_fence_signal(epd, 0, 0, 0, 0, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL));
    EXPECT_EQ(scif_mmap(nullptr, 4096, SCIF_PROT_READ, 0, epd, 0), SCIF_MMAP_FAILED);
    EXPECT_EQ(errno, error);
    EXPECT_FAILS(error, scif_close(epd));
  }
  ::close(other[0]);
  ::close(other[1]);
}

TEST_F(ScifListen, NeedsABoundEndpointAndAPositiveBacklog) {
  const Epd epd;
  EXPECT_FAILS(EINVAL, scif_listen(epd, 1));
  ASSERT_GT(scif_bind(epd, 0), 0);
  EXPECT_FAILS(EINVAL, scif_listen(epd, 0));
  EXPECT_FAILS(EINVAL, scif_listen(epd, -1));
  EXPECT_EQ(scif_listen(epd, 100'000), 0);
  EXPECT_FAILS(EISCONN, scif_listen(epd, 1));
}

TEST_F(ScifListen, OnAConnectedEndpointIsEisconn) {
  const Pair pair;
  EXPECT_FAILS(EISCONN, scif_listen(pair.connector, 1));
  EXPECT_FAILS(EISCONN, scif_listen(pair.acceptor, 1));
}

TEST_F(ScifConnect, RefusesBadDestinationsAndStates) {
  const Epd epd;
  const Listening listening;
  scif_portID zero{.node = 0, .port = 0};
  scif_portID nobody{.node = 0, .port = 7777};
  scif_portID there = listening.port;
  EXPECT_FAILS(EINVAL, scif_connect(epd, &zero));
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &nobody));
  EXPECT_FAILS(EOPNOTSUPP, scif_connect(listening.epd, &there));
  EXPECT_FAILS(EINVAL, scif_connect(epd, nullptr));
}

TEST_F(ScifConnect, ARefusedEndpointIsBoundAndMayRetry) {
  const Epd epd;
  const int port = scif_bind(epd, 0);
  scif_portID nobody{.node = 0, .port = 7777};
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &nobody));
  EXPECT_FAILS(EINVAL, scif_bind(epd, 0));
  Listening listening;
  Child peer([&] { return Epd(listening.accept()) >= 0; });
  EXPECT_EQ(scif_connect(epd, &listening.port), port);
}

TEST_F(ScifConnect, SucceedsWithTheLocalPortOnlyWhenAccepted) {
  const Listening listening;
  SharedValue<std::atomic<int>> phase;
  Child connector([&] {
    Epd epd;
    scif_portID to = listening.port;
    *phase = 1;
    const int port = scif_connect(epd, &to);
    *phase = 2;
    return port > 0 && send_text(epd, std::to_string(port)) > 0;
  });
  EXPECT_NE(kernel_events(listening.epd, POLLIN, -1), 0);
  ::usleep(50'000);  // time in which it could succeed too early
  EXPECT_EQ(*phase, 1);
  scif_portID peer{};
  const Epd epd(listening.accept(&peer));
  EXPECT_EQ(connector.wait(), 0);
  EXPECT_EQ(peer.node, 0);
  EXPECT_EQ(receive_text(epd, 64, 0), std::to_string(peer.port));
}

TEST_F(ScifConnect, WhenNonBlockingIsInProgressThenCollectedOnceThenEisconn) {
  const Listening listening;
  Epd epd;
  set_nonblocking(epd, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  EXPECT_EQ(kernel_events(epd, POLLOUT), 0);
  EXPECT_EQ(events(epd, SCIF_POLLIN | SCIF_POLLOUT), 0);
  scif_portID peer{};
  const Epd other(listening.accept(&peer));
  EXPECT_EQ(kernel_events(epd, POLLOUT, -1), POLLOUT);
  EXPECT_EQ(events(epd, SCIF_POLLIN | SCIF_POLLOUT), SCIF_POLLOUT);
  EXPECT_EQ(scif_connect(epd, &to), peer.port);
  EXPECT_FAILS(EISCONN, scif_connect(epd, &to));
}

TEST_F(ScifConnect, ARefusalOfANonBlockingAttemptIsCollectedOnceAndTheEndpointIsBoundAgain) {
  Listening listening;
  Epd epd;
  set_nonblocking(epd, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  listening.epd.close();
  EXPECT_NE(kernel_events(epd, POLLOUT, -1) & POLLOUT, 0);
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
  EXPECT_FAILS(EINVAL, scif_bind(epd, 0));
  const Listening again;
  to = again.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  const Epd other(again.accept());
  EXPECT_GT(scif_connect(epd, &to), 0);
}

TEST_F(ScifConnect, GivesUpAfterTenSecondsWithEconnrefused) {
  const Listening listening;
  Epd epd;
  scif_portID to = listening.port;
  const std::int64_t before = steady_ns();
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
  EXPECT_GE(steady_ns() - before, 9'900'000'000);
  EXPECT_FAILS(EINVAL, scif_bind(epd, 0));
}

TEST_F(ScifConnect, OnAConnectedEndpointIsEisconnAndOnADisconnectedOneEinval) {
  Pair pair;
  const Listening listening;
  scif_portID to = listening.port;
  EXPECT_FAILS(EISCONN, scif_connect(pair.connector, &to));
  EXPECT_FAILS(EISCONN, scif_connect(pair.acceptor, &to));
  pair.acceptor.close();
  EXPECT_FAILS(EINVAL, scif_connect(pair.connector, &to));
}

TEST_F(ScifConnect, IsInterruptedByASignal) {
  const Listening listening;
  Child connector([&] {
    Epd epd;
    scif_portID to = listening.port;
    interrupt_calls();
    return scif_connect(epd, &to) == -1 && errno == EINTR;
  });
  EXPECT_EQ(connector.wait(), 0);
}

TEST_F(ScifAccept, ChecksItsArgumentsAndState) {
  const Listening listening;
  const Epd idle;
  scif_portID peer{};
  scif_epd_t made = -1;
  EXPECT_FAILS(EINVAL, scif_accept(listening.epd, &peer, &made, 2));
  EXPECT_FAILS(EINVAL, scif_accept(listening.epd, nullptr, &made, 0));
  EXPECT_FAILS(EINVAL, scif_accept(listening.epd, &peer, nullptr, 0));
  EXPECT_FAILS(EINVAL, scif_accept(idle, &peer, &made, 0));
  EXPECT_FAILS(EAGAIN, scif_accept(listening.epd, &peer, &made, 0));
}

TEST_F(ScifAccept, EndsWithEintrWhenAnotherThreadClosesTheListener) {
  Listening listening;
  Waiting accepting([listener = int{listening.epd}] {
    scif_portID peer{};
    scif_epd_t made = -1;
    return scif_accept(listener, &peer, &made, SCIF_ACCEPT_SYNC);
  });
  EXPECT_TRUE(accepting.waits());
  listening.epd.close();
  accepting.join();
  EXPECT_EQ(accepting.result, -1);
  EXPECT_EQ(accepting.error, EINTR) << std::strerror(accepting.error);
}

TEST_F(ScifAccept, IsInterruptedByASignal) {
  Child acceptor([&] {
    const Listening listening;
    scif_portID peer{};
    scif_epd_t made = -1;
    interrupt_calls();
    return scif_accept(listening.epd, &peer, &made, SCIF_ACCEPT_SYNC) == -1 && errno == EINTR;
  });
  EXPECT_EQ(acceptor.wait(), 0);
}

TEST_F(ScifAccept, GoesOnWaitingWhenTheRequesterVanished) {
  const Listening listening;
  Epd vanishing;
  set_nonblocking(vanishing, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(vanishing, &to));
  vanishing.close();
  scif_portID peer{};
  scif_epd_t made = -1;
  EXPECT_FAILS(EAGAIN, scif_accept(listening.epd, &peer, &made, 0));
  Epd second;
  set_nonblocking(second, true);
  const int port = scif_bind(second, 0);
  Epd third;
  set_nonblocking(third, true);
  EXPECT_FAILS(EINPROGRESS, scif_connect(third, &to));
  third.close();
  EXPECT_FAILS(EINPROGRESS, scif_connect(second, &to));
  const Epd accepted(listening.accept(&peer));
  EXPECT_EQ(peer.port, port);
}

/// How long a request waited that a closing listener refused.
std::int64_t time_to_a_refusal() {
  const SharedValue<std::int64_t> took;
  Listening listening;
  Child connector([&] {
    listening.epd.close();  // or the listener would live on here
    Epd epd;
    scif_portID to = listening.port;
    const std::int64_t before = steady_ns();
    const bool refused = scif_connect(epd, &to) == -1 && errno == ECONNREFUSED;
    *took = steady_ns() - before;
    return refused;
  });
  EXPECT_NE(kernel_events(listening.epd, POLLIN, -1), 0);
  listening.epd.close();
  EXPECT_EQ(connector.wait(), 0);
  return *took;
}

TEST_F(ScifClose, OfAListenerRefusesTheRequestsThatWait) {
  while (time_to_a_refusal() > 9'900'000'000) continue;  // each time, were it for want of an answer
}

TEST_F(ScifClose, WithClose2IsAsGood) {
  Pair pair;
  ASSERT_EQ(::close(pair.acceptor.release()), 0);
  char byte = 0;
  EXPECT_FAILS(ECONNRESET, scif_recv(pair.connector, &byte, 1, SCIF_RECV_BLOCK));
}

TEST_F(ScifClose, ANumberClosedWithClose2AndGivenAgainIsANewEndpoint) {
  Pair pair;
  const int number = pair.acceptor;
  ASSERT_EQ(::close(pair.acceptor.release()), 0);
  char byte = 0;
  EXPECT_FAILS(EBADF, scif_close(number));
  std::vector<Epd> others(1);
  while (others.back() != number) others.emplace_back();
  const Epd& fresh = others.back();
  EXPECT_FAILS(ENOTCONN, scif_send(fresh, &byte, 1, 0));
  EXPECT_GT(scif_bind(fresh, 0), 0);
}

TEST_F(ScifClose, ANumberThatBecameSomethingElseIsNotClosed) {
  Pair pair;
  const int number = pair.acceptor;
  ASSERT_EQ(::close(pair.acceptor.release()), 0);
  const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(other, number), number);
  EXPECT_FAILS(ENOTTY, scif_close(number));
  EXPECT_EQ(::close(number), 0);
  EXPECT_EQ(::close(other), 0);
}

TEST_F(ScifClose, APeerThatClosedMustStillBeClosedAndTwiceIsEbadf) {
  Pair pair;
  pair.acceptor.close();
  const int number = pair.connector.release();
  EXPECT_EQ(scif_close(number), 0);
  EXPECT_FAILS(EBADF, scif_close(number));
}

TEST_F(ScifNodes, TellsTheOwnNodeWithoutAnEndpoint) {
  Child card([] {
    ::setenv("WHERRY_NODE", "3", 1);
    std::uint16_t self = 9;
    return scif_get_nodeIDs(nullptr, 0, &self) == 2 && self == 3;
  });
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(ScifNodes, TellsTheNodesThatAreThereNowAndFillsAtMostLen) {
  std::uint16_t self = 9;
  std::uint16_t nodes[4] = {99, 99, 99, 99};
  EXPECT_EQ(scif_get_nodeIDs(nodes, 4, &self), 1);
  EXPECT_EQ(self, 0);
  EXPECT_EQ(nodes[0], 0);
  SharedValue<std::atomic<int>> ready;
  Child card([&] {
    ::setenv("WHERRY_NODE", "2", 1);
    Epd epd;
    if (scif_bind(epd, 0) < 0) return false;
    *ready = 1;
    while (true) ::pause();
  });
  while (*ready == 0) std::this_thread::yield();
  EXPECT_EQ(scif_get_nodeIDs(nodes, 1, &self), 2);
  EXPECT_EQ(nodes[1], 99);
  EXPECT_EQ(scif_get_nodeIDs(nodes, 4, &self), 2);
  EXPECT_EQ(nodes[1], 2);
  card.kill();
  card.wait();
  EXPECT_EQ(scif_get_nodeIDs(nodes, 4, &self), 1);
}

TEST_F(ScifNodes, ACardConnectsToTheHostAndTheHostToACard) {
  SharedValue<std::atomic<int>> port;
  const Listening host;
  Child card([&] {
    ::setenv("WHERRY_NODE", "1", 1);
    Epd epd;
    scif_portID to = host.port;
    if (scif_connect(epd, &to) <= 0) return false;
    Epd listener;
    const int own = scif_bind(listener, 0);
    if (scif_listen(listener, 1) != 0) return false;
    *port = own;
    scif_portID peer{};
    scif_epd_t made = -1;
    return scif_accept(listener, &peer, &made, SCIF_ACCEPT_SYNC) == 0 && peer.node == 0 && send_text(made, "hi") == 2;
  });
  scif_portID peer{};
  const Epd first(host.accept(&peer));
  EXPECT_EQ(peer.node, 1);
  while (*port == 0) std::this_thread::yield();
  scif_portID to{.node = 1, .port = static_cast<std::uint16_t>(*port)};
  const Epd second;
  EXPECT_GT(scif_connect(second, &to), 0) << std::strerror(errno);
  EXPECT_EQ(receive_text(second, 2), "hi");
  EXPECT_EQ(card.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
