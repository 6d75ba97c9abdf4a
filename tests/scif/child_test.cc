// SPDX-License-Identifier: Apache-2.0
// Endpoints in a child whose parent goes on with them, or closes them.
#include <atomic>

#include "tests/common/time_limit.hpp"
#include "tests/scif/pages.hpp"
#include "tests/scif/waiting.hpp"

namespace wherry::scif_test {
namespace {

class ScifChild : public Scif {};

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
    *far = scif_register(pair.connector, peers, kPage, 0, kRw, 0);
    EXPECT_GT(*far, 0) << std::strerror(errno);
    char byte = 0;
    EXPECT_FAILS(ENXIO, scif_vreadfrom(pair.connector, &byte, 1, near, 0));  // the window was the parent's
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
      return mapped != SCIF_MMAP_FAILED && scif_close(pair.connector) == 0 &&
             scif_munmap(mapped + kPage, kPage) == 0 && is_filled(mapped, kPage, 1) &&
             scif_munmap(mapped, 4 * kPage) == 0;
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
