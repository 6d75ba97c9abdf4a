// SPDX-License-Identifier: Apache-2.0
// scif_bind, and who holds a port.
#include <linux/capability.h>
#include <sys/syscall.h>

#include <atomic>

#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifBind : public Scif {};

TEST_F(ScifBind, ReturnsThePort) {
  const Epd epd;
  EXPECT_EQ(scif_bind(epd, 2000), 2000);
}

TEST_F(ScifBind, PortZeroIsAnAutomaticPortAboveTheReservedOnes) {
  const Epd a;
  const Epd b;
  const int first = scif_bind(a, 0);
  const int second = scif_bind(b, 0);
  EXPECT_GE(first, 1089);
  EXPECT_GE(second, 1089);
  EXPECT_NE(first, second);
}

TEST_F(ScifBind, BelowPort1024NeedsPrivilege) {
  Child unprivileged([] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
    if (::syscall(SYS_capset, &header, none) != 0) return false;
    Epd epd;
    const bool refused = scif_bind(epd, 1023) == -1 && errno == EACCES && scif_bind(epd, 1) == -1 && errno == EACCES;
    return refused && scif_bind(epd, 1024) == 1024;
  });
  EXPECT_EQ(unprivileged.wait(), 0);
}

TEST_F(ScifBind, ABoundEndpointIsEinvalAndAConnectedOrListeningOneEisconn) {
  const Epd epd;
  ASSERT_GT(scif_bind(epd, 0), 0);
  EXPECT_FAILS(EINVAL, scif_bind(epd, 0));
  const Listening listening;
  EXPECT_FAILS(EISCONN, scif_bind(listening.epd, 0));
  const Pair pair;
  EXPECT_FAILS(EISCONN, scif_bind(pair.connector, 0));
  EXPECT_FAILS(EISCONN, scif_bind(pair.acceptor, 0));
}

TEST_F(ScifBind, APortInUseIsEinvalAlsoInAnotherProcess) {
  const Epd epd;
  ASSERT_EQ(scif_bind(epd, 2000), 2000);
  const Epd other;
  EXPECT_FAILS(EINVAL, scif_bind(other, 2000));
  Child child([] {
    Epd third;
    return scif_bind(third, 2000) == -1 && errno == EINVAL;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ScifBind, TheSamePortOfAnotherNodeIsFree) {
  const Epd epd;
  ASSERT_EQ(scif_bind(epd, 2000), 2000);
  Child card([] {
    ::setenv("WHERRY_NODE", "1", 1);
    Epd other;
    return scif_bind(other, 2000) == 2000;
  });
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(ScifBind, APortIsFreeAfterCloseAndAfterClose2) {
  Epd epd;
  ASSERT_EQ(scif_bind(epd, 2000), 2000);
  epd.close();
  Epd second;
  ASSERT_EQ(scif_bind(second, 2000), 2000);
  ::close(second.release());
  const Epd third;
  EXPECT_EQ(scif_bind(third, 2000), 2000);
}

TEST_F(ScifBind, APortStaysTakenWhileAnAcceptedEndpointLives) {
  Listening listening;
  const int port = listening.port.port;
  Epd connector;
  set_nonblocking(connector, true);
  EXPECT_FAILS(EINPROGRESS, scif_connect(connector, &listening.port));
  Epd accepted(listening.accept());
  listening.epd.close();
  const Epd other;
  EXPECT_FAILS(EINVAL, scif_bind(other, static_cast<std::uint16_t>(port)));
  accepted.close();
  EXPECT_EQ(scif_bind(other, static_cast<std::uint16_t>(port)), port);
}

TEST_F(ScifBind, APortIsFreeWhenItsLastHolderIsKilled) {
  SharedValue<std::atomic<int>> port;
  Child holder([&] {
    Listening listening;
    Epd connector;
    set_nonblocking(connector, true);
    EXPECT_FAILS(EINPROGRESS, scif_connect(connector, &listening.port));
    const Epd accepted(listening.accept());
    listening.epd.close();
    *port = listening.port.port;
    while (true) ::pause();
    return true;
  });
  while (*port == 0) ::usleep(100);
  const Epd epd;
  EXPECT_FAILS(EINVAL, scif_bind(epd, static_cast<std::uint16_t>(*port)));
  holder.kill();
  holder.wait();
  EXPECT_EQ(scif_bind(epd, static_cast<std::uint16_t>(*port)), *port);
}

}  // namespace
}  // namespace wherry::scif_test
