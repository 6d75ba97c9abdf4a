// SPDX-License-Identifier: Apache-2.0
// Endpoints in a child whose parent goes on with them, or closes them.
#include <atomic>

#include "tests/scif/pages.hpp"

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

}  // namespace
}  // namespace wherry::scif_test
