// SPDX-License-Identifier: Apache-2.0
// Endpoints in a child whose parent goes on with them, or closes them.
#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifChild : public Scif {};

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
