// SPDX-License-Identifier: Apache-2.0
// scif_bind, and what holds a port.
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

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

/// Takes ports as another program might: binds bare sockets to the names in a process that a few hundred fit in.
/// Returns 0, or an errno value.
int take_ports(sockaddr_un name, socklen_t length, int first, int last) {
  const std::string text(name.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  const std::string common = text.substr(0, text.rfind(':') + 1);
  for (int port = first; port < last; ++port) {
    const std::string whole = common + std::to_string(port);
    std::memcpy(name.sun_path + 1, whole.data(), whole.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + whole.size());
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (socket < 0) return errno;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), length) != 0 && errno != EADDRINUSE) return errno;
  }
  return 0;
}

TEST_F(ScifBind, WithoutAFreePortAnAutomaticOneIsEnospc) {
  Epd epd;
  ASSERT_GT(scif_bind(epd, 0), 0);
  sockaddr_un name{};
  socklen_t length = sizeof name;
  ASSERT_EQ(::getsockname(epd, reinterpret_cast<sockaddr*>(&name), &length), 0);
  constexpr int kFirst = 1089;
  constexpr int kEnd = 65536;
  constexpr int kEach = 900;
  const SharedValue<std::atomic<int>> ready;
  const SharedValue<std::atomic<int>> failure;
  std::vector<Child> holders;
  for (int first = kFirst; first < kEnd; first += kEach) {
    holders.emplace_back([&, first] {
      if (const int error = take_ports(name, length, first, std::min(first + kEach, kEnd)); error != 0)
        *failure = error;
      ++*ready;
      while (true) ::pause();
      return true;
    });
  }
  while (*ready != static_cast<int>(holders.size())) ::usleep(1000);
  if (*failure == ENFILE || *failure == EMFILE || *failure == ENOBUFS || *failure == ENOMEM) {
    GTEST_SKIP() << "not every port can be taken here: " << std::strerror(*failure);
  }
  ASSERT_EQ(*failure, 0);
  Epd second;
  EXPECT_FAILS(ENOSPC, scif_bind(second, 0));
  scif_portID nobody{.node = 0, .port = 1088};
  EXPECT_FAILS(ENOSPC, scif_connect(second, &nobody));
  EXPECT_EQ(scif_bind(second, 1088), 1088) << "it is unbound still";
}

}  // namespace
}  // namespace wherry::scif_test
