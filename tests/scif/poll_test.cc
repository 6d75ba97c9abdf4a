// SPDX-License-Identifier: Apache-2.0
// scif_poll, and poll(2) on the descriptor.
#include <sys/epoll.h>
#include <sys/select.h>

#include <thread>

#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifPoll : public Scif {};

constexpr short kBoth = SCIF_POLLIN | SCIF_POLLOUT;

TEST_F(ScifPoll, AListenerIsReadableIffARequestWaits) {
  const Listening listening;
  EXPECT_EQ(events(listening.epd, kBoth), 0);
  EXPECT_EQ(kernel_events(listening.epd, kBoth), 0);
  Epd epd;
  set_nonblocking(epd, true);
  scif_portID to = listening.port;
  EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
  EXPECT_EQ(events(listening.epd, kBoth), SCIF_POLLIN);
  EXPECT_EQ(kernel_events(listening.epd, kBoth), POLLIN);
  const Epd accepted(listening.accept());
  EXPECT_EQ(events(listening.epd, kBoth), 0);
}

TEST_F(ScifPoll, AConnectedEndpointIsReadableIffAByteIsThere) {
  const Pair pair;
  EXPECT_EQ(events(pair.acceptor, kBoth), SCIF_POLLOUT);
  EXPECT_EQ(kernel_events(pair.acceptor, kBoth), POLLOUT);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(send_text(pair.connector, "ab"), 2);
    EXPECT_EQ(kernel_events(pair.acceptor, kBoth), kBoth);
    EXPECT_EQ(events(pair.acceptor, kBoth), kBoth);
    EXPECT_EQ(receive_text(pair.acceptor, 1), "a");
    EXPECT_EQ(kernel_events(pair.acceptor, kBoth), kBoth) << "one is left";
    EXPECT_EQ(receive_text(pair.acceptor, 1), "b");
    EXPECT_EQ(kernel_events(pair.acceptor, kBoth), POLLOUT);
    EXPECT_EQ(events(pair.acceptor, kBoth), SCIF_POLLOUT);
  }
}

TEST_F(ScifPoll, AConnectedEndpointIsWritableIffAByteFits) {
  const Pair pair;
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(send_text(pair.connector, std::string(4094, 'x'), 0), 4094);
    EXPECT_EQ(kernel_events(pair.connector, kBoth), POLLOUT);
    EXPECT_EQ(send_text(pair.connector, "xy", 0), 1);
    EXPECT_EQ(kernel_events(pair.connector, kBoth), 0);
    EXPECT_EQ(events(pair.connector, kBoth), 0);
    EXPECT_EQ(receive_text(pair.acceptor, 1), "x");
    EXPECT_EQ(kernel_events(pair.connector, kBoth), POLLOUT) << "one fits";
    EXPECT_EQ(kernel_events(pair.acceptor, kBoth), kBoth) << "4094 are left";
    EXPECT_EQ(events(pair.connector, kBoth), SCIF_POLLOUT);
    EXPECT_EQ(receive_text(pair.acceptor, 4094).size(), 4094U);
    EXPECT_EQ(kernel_events(pair.acceptor, kBoth), POLLOUT);
  }
}

TEST_F(ScifPoll, HangUpComesWithoutPollinOnceDrained) {
  Pair pair;
  EXPECT_EQ(send_text(pair.acceptor, "x"), 1);
  pair.acceptor.close();
  EXPECT_EQ(events(pair.connector, SCIF_POLLIN), SCIF_POLLIN | SCIF_POLLHUP);
  EXPECT_EQ(receive_text(pair.connector, 1), "x");
  EXPECT_EQ(events(pair.connector, SCIF_POLLIN), SCIF_POLLHUP);
  EXPECT_NE(kernel_events(pair.connector, POLLIN) & POLLHUP, 0);
}

TEST_F(ScifPoll, UnboundAndBoundEndpointsGivePollerr) {
  const Epd epd;
  EXPECT_EQ(events(epd, kBoth), SCIF_POLLERR);
  ASSERT_GT(scif_bind(epd, 0), 0);
  EXPECT_EQ(events(epd, kBoth), SCIF_POLLERR);
}

TEST_F(ScifPoll, AnInvalidDescriptorGivesPollnval) { EXPECT_EQ(events(100'000, kBoth), SCIF_POLLNVAL); }

TEST_F(ScifPoll, ReturnsHowManyAndZeroAfterTheTimeout) {
  const Pair pair;
  scif_pollepd polled[2] = {{pair.acceptor, SCIF_POLLIN, 9}, {pair.connector, kBoth, 9}};
  EXPECT_EQ(scif_poll(polled, 2, 0), 1);
  EXPECT_EQ(polled[0].revents, 0);
  EXPECT_EQ(polled[1].revents, SCIF_POLLOUT);
  const std::int64_t before = steady_ns();
  EXPECT_EQ(scif_poll(polled, 1, 30), 0);
  EXPECT_GE(steady_ns() - before, 30'000'000);
}

TEST_F(ScifPoll, OfNothingWaitsForTheTimeout) {
  const std::int64_t before = steady_ns();
  EXPECT_EQ(scif_poll(nullptr, 0, 30), 0);
  EXPECT_GE(steady_ns() - before, 30'000'000);
}

TEST_F(ScifPoll, OfSomethingThatIsNoEndpointIsAsPoll2) {
  const Epd epd;
  int other[2];
  ASSERT_EQ(::pipe(other), 0);
  EXPECT_EQ(events(other[0], SCIF_POLLIN), 0);
  ASSERT_EQ(::write(other[1], "x", 1), 1);
  scif_pollepd polled[2] = {{other[0], SCIF_POLLIN, 0}, {epd, SCIF_POLLIN, 0}};
  EXPECT_EQ(scif_poll(polled, 2, -1), 2);
  EXPECT_EQ(polled[0].revents, SCIF_POLLIN);
  EXPECT_EQ(polled[1].revents, SCIF_POLLERR);
  ::close(other[0]);
  ::close(other[1]);
}

TEST_F(ScifPoll, IsInterruptedByASignal) {
  const Pair pair;
  Child child([&] {
    interrupt_calls();
    scif_pollepd polled{pair.acceptor, SCIF_POLLIN, 0};
    return scif_poll(&polled, 1, -1) == -1 && errno == EINTR;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ScifPoll, AfterTheEndSaysStillWhetherAByteFits) {
  for (const bool full : {false, true}) {
    Pair pair;
    if (full) {
      EXPECT_EQ(send_text(pair.connector, std::string(5000, 'x'), 0), 4095);
    }
    pair.acceptor.close();
    EXPECT_EQ(events(pair.connector, kBoth), full ? SCIF_POLLHUP : SCIF_POLLHUP | SCIF_POLLOUT);
  }
}

TEST_F(ScifPoll, NegativeTimeoutWaitsForEver) {
  const Pair pair;
  std::thread sender([&] {
    ::usleep(20'000);
    send_text(pair.connector, "x");
  });
  EXPECT_EQ(events(pair.acceptor, SCIF_POLLIN, -1), SCIF_POLLIN);
  sender.join();
}

TEST_F(ScifPoll, WaitsForSpace) {
  const Pair pair;
  EXPECT_EQ(send_text(pair.connector, std::string(5000, 'x'), 0), 4095);
  std::thread receiver([&] {
    ::usleep(20'000);
    receive_text(pair.acceptor, 10);
  });
  EXPECT_EQ(events(pair.connector, SCIF_POLLOUT, -1), SCIF_POLLOUT);
  receiver.join();
}

TEST_F(ScifPoll, ABarePollWaitsForSpaceAndForBytes) {
  const Pair pair;
  EXPECT_EQ(send_text(pair.connector, std::string(5000, 'x'), 0), 4095);
  std::thread receiver([&] {
    ::usleep(20'000);
    receive_text(pair.acceptor, 10);
    ::usleep(20'000);
    send_text(pair.acceptor, "x");
  });
  EXPECT_EQ(kernel_events(pair.connector, POLLOUT, -1), POLLOUT);
  EXPECT_EQ(kernel_events(pair.connector, POLLIN, -1), POLLIN);
  receiver.join();
}

TEST_F(ScifPoll, SelectAndEpollWorkOnTheDescriptor) {
  const Pair pair;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.fd = pair.acceptor}};
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pair.acceptor, &event), 0);
  EXPECT_EQ(::epoll_wait(epoll, &event, 1, 0), 0);
  EXPECT_EQ(send_text(pair.connector, "x"), 1);
  EXPECT_EQ(::epoll_wait(epoll, &event, 1, 0), 1);
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(pair.acceptor, &readable);
  timeval at_once{};
  EXPECT_EQ(::select(pair.acceptor + 1, &readable, nullptr, nullptr, &at_once), 1);
  ::close(epoll);
}

}  // namespace
}  // namespace wherry::scif_test
