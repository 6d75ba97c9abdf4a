// SPDX-License-Identifier: Apache-2.0
// The errno values of a refusal: programs try again on ECONNREFUSED, and give up on ENODEV.
#include <atomic>

#include "base/scoped_environment.hpp"
#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifRefusal : public Scif {};

TEST_F(ScifRefusal, OfANodeOnWhichNobodyIsYetIsEconnrefused) {
  const Epd epd;
  for (const int node : {0, 1, 77, 255}) {
    scif_portID to{.node = static_cast<std::uint16_t>(node), .port = 7777};
    EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
  }
}

TEST_F(ScifRefusal, OfANodeBeyondTheirNumberIsEnodev) {
  const Epd epd;
  scif_portID to{.node = 256, .port = 7777};
  EXPECT_FAILS(ENODEV, scif_connect(epd, &to));
  const ScopedEnvironment few("WHERRY_NODES", "3");
  to.node = 3;
  EXPECT_FAILS(ENODEV, scif_connect(epd, &to));
  to.node = 2;
  EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
}

TEST_F(ScifRefusal, OfANetworkIsEnotsupWhenOpened) {
  const ScopedEnvironment network("WHERRY_FABRIC", "inproc-net");
  testing::internal::CaptureStderr();
  EXPECT_FAILS(ENOTSUP, scif_open());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("its peers cannot map each other's memory"), std::string::npos);
}

TEST_F(ScifRefusal, OfTheHostsOfAFileIsEnotsupWhenOpened) {
  const ScopedEnvironment hosts("WHERRY_HOSTS", "/nonexistent/hosts");
  {
    const ScopedEnvironment none("WHERRY_FABRIC", "");
    testing::internal::CaptureStderr();
    EXPECT_FAILS(ENOTSUP, scif_open());
    EXPECT_NE(testing::internal::GetCapturedStderr().find("set WHERRY_FABRIC=shm"), std::string::npos);
  }
  const ScopedEnvironment shm("WHERRY_FABRIC", "shm");
  const Epd epd;
  EXPECT_GE(epd, 0);
}

TEST_F(ScifRefusal, OfACardWhoseProgramComesLaterEndsWhenItComes) {
  const SharedValue<std::atomic<int>> tries;
  Child host([&] {
    const Epd epd;
    scif_portID card{.node = 1, .port = 2000};
    while (scif_connect(epd, &card) < 0) {
      if (errno != ECONNREFUSED) return false;
      ++*tries;
      ::usleep(1000);
    }
    return receive_text(epd, 5) == "hello";
  });
  while (*tries < 3) ::usleep(1000);
  Child card([] {
    ::setenv("WHERRY_NODE", "1", 1);
    const Epd listener;
    scif_portID peer{};
    scif_epd_t made = -1;
    return scif_bind(listener, 2000) == 2000 && scif_listen(listener, 1) == 0 &&
           scif_accept(listener, &peer, &made, SCIF_ACCEPT_SYNC) == 0 && send_text(made, "hello") == 5;
  });
  EXPECT_EQ(host.wait(), 0);
  EXPECT_EQ(card.wait(), 0);
}

TEST_F(ScifRefusal, ABacklogOfNAdmitsN) {
  for (const int backlog : {1, 2, 5}) {
    const Listening listening(backlog);
    scif_portID to = listening.port;
    std::vector<Epd> waiting(static_cast<std::size_t>(backlog) + 3);
    int admitted = 0;
    for (const Epd& epd : waiting) {
      set_nonblocking(epd, true);
      EXPECT_EQ(scif_connect(epd, &to), -1);
      if (errno == EINPROGRESS) {
        ++admitted;
      } else {
        EXPECT_EQ(errno, ECONNREFUSED) << std::strerror(errno);
      }
    }
    EXPECT_EQ(admitted, backlog);
  }
}

}  // namespace
}  // namespace wherry::scif_test
