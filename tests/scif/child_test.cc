// SPDX-License-Identifier: Apache-2.0
// Endpoints in a child while its parent goes on with them, or closes them.
#include <atomic>

#include "tests/common/time_limit.hpp"
#include "tests/scif/pages.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifChild : public Scif {};

TEST_F(ScifChild, ThatClosesLeavesTheParentsWaitingThreadsAlone) {
  Pair pair;
  char byte = 0;
  Waiting receiving([&] {
    const int first = scif_recv(pair.acceptor, &byte, 1, SCIF_RECV_BLOCK);
    return first + scif_recv(pair.acceptor, &byte, 1, SCIF_RECV_BLOCK);
  });
  EXPECT_TRUE(receiving.waits());
  Child child([&] { return scif_close(pair.acceptor) == 0 && scif_close(pair.connector) == 0; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(receiving.waits());
  EXPECT_EQ(send_text(pair.connector, "x"), 1);
  EXPECT_TRUE(receiving.waits()) << "for the next";
  EXPECT_EQ(send_text(pair.connector, "y"), 1);
  receiving.join();
  EXPECT_EQ(receiving.result, 2) << std::strerror(receiving.error);
}

/// This thread sleeps in a call, until another closes the endpoint.
void sleep_until_closed() {
  Pair pair;
  const scif_epd_t epd = pair.acceptor.release();
  Waiting closing([epd] {
    ::usleep(2000);
    return scif_close(epd);
  });
  char byte = 0;
  EXPECT_EQ(scif_recv(epd, &byte, 1, SCIF_RECV_BLOCK), -1);
}

TEST_F(ScifChild, IsNotWokenWithTheThreadThatForkedIt) {
  sleep_until_closed();
  const SharedValue<std::atomic<int>> phase;
  Child child([&] {
    const Pair pair;
    Child sending([&] {
      while (*phase != 2) ::usleep(100);
      return send_text(pair.connector, "x") == 1;
    });
    *phase = 1;
    EXPECT_EQ(receive_text(pair.acceptor, 1), "x") << std::strerror(errno);
    return sending.wait() == 0 && !::testing::Test::HasFailure();
  });
  while (*phase != 1) ::usleep(100);
  for (int i = 0; i < 10; ++i) sleep_until_closed();
  *phase = 2;
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ScifChild, MayReceiveAndSendThoughAThreadOfItsParentIsAboutTo) {
  Pair pair;
  Waiting receiving([&] {
    char bytes[100];
    return scif_recv(pair.acceptor, bytes, 100, SCIF_RECV_BLOCK);
  });
  Waiting sending([&] { return send_text(pair.acceptor, std::string(5000, 'x')); });
  EXPECT_TRUE(receiving.waits());
  EXPECT_TRUE(sending.waits());
  Child child([&] {
    return send_text(pair.connector, "ab") == 2 && receive_text(pair.acceptor, 2) == "ab" &&
           receive_text(pair.connector, 4095) == std::string(4095, 'x') && send_text(pair.acceptor, "cd") == 2;
  });
  EXPECT_EQ(child.wait(), 0);
  pair.connector.close();
  receiving.join();
  sending.join();
}

TEST_F(ScifChild, MayTakeAnEndpointOverWithItsRma) {
  Child process([] {
    Pair pair;
    const Pages own(1);
    const Pages peers(1);
    fill(peers, kPage, 1);
    const off_t near = scif_register(pair.acceptor, own, kPage, 0, kRw, 0);
    const SharedValue<std::atomic<off_t>> far;
    Child child([&] {
      while (*far == 0) ::usleep(100);
      std::vector<char> bytes(kPage);
      return scif_vreadfrom(pair.acceptor, bytes.data(), kPage, *far, 0) == 0 && is_filled(bytes.data(), kPage, 1);
    });
    pair.acceptor.close();
    const off_t registered = scif_register(pair.connector, peers, kPage, 0, kRw, 0);
    EXPECT_GT(registered, 0) << std::strerror(errno);
    char byte = 0;
    EXPECT_FAILS(ENXIO, scif_vreadfrom(pair.connector, &byte, 1, near, 0));  // the window was the parent's
    *far = registered;  // after which the child may end at any time
    EXPECT_EQ(child.wait(), 0);
    await_hang_up(pair.connector);
    EXPECT_FAILS(ECONNRESET, scif_vreadfrom(pair.connector, &byte, 1, near, 0));
    EXPECT_FAILS(ECONNRESET, static_cast<int>(scif_register(pair.connector, own, kPage, 0, kRw, 0)));
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Which AddressSanitizer would tell.
TEST_F(ScifChild, ThatClosedTheEndpointUnmapsPartsOfWhatItMapped) {
  Child process([] {
    const Pair pair;
    const Pages peers(4);
    fill(peers, 4 * kPage, 1);
    const off_t far = scif_register(pair.acceptor, peers, 4 * kPage, 0, kRw, 0);
    Child child([&] {
      auto* const mapped = static_cast<char*>(scif_mmap(nullptr, 4 * kPage, kRw, 0, pair.connector, far));
      return mapped != SCIF_MMAP_FAILED && scif_close(pair.connector) == 0 && scif_munmap(mapped + kPage, kPage) == 0 &&
             is_filled(mapped, kPage, 1) && scif_munmap(mapped, 4 * kPage) == 0;
    });
    EXPECT_EQ(child.wait(), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

/// Three threads once waited for each other for ever: each held what the next one needed.
TEST_F(ScifChild, IsForkedWhileOneThreadClosesAndAnotherSendsFromRegisteredMemory) {
  Child process([] {
    constexpr std::size_t kPages = 16;
    const Pages memory(kPages);
    const TimeLimit limit(std::chrono::seconds(1));
    for (int round = 0; round < 100 && !limit.over(); ++round) {
      Pair pair;
      const scif_epd_t epd = pair.connector;
      EXPECT_GT(scif_register(epd, memory, kPages * kPage, 0, kRw, 0), 0);
      Waiting sending([&] {
        while (scif_send(epd, memory, kPages * kPage, 0) >= 0) continue;
        return 0;
      });
      Waiting closing([&] {
        ::usleep(static_cast<useconds_t>(100 * (round % 10)));
        pair.connector.close();
        return 0;
      });
      for (int i = 0; i < 3; ++i) {
        Child child([] { return true; });
        EXPECT_EQ(child.wait(), 0);
      }
    }
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
