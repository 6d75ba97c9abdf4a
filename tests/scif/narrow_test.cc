// SPDX-License-Identifier: Apache-2.0
// Where descriptors are short: what failed may be tried again. Each of these tests is a process of its own.
#include "tests/common/no_descriptors.hpp"
#include "tests/scif/common.hpp"

namespace wherry::scif_test {
namespace {

class ScifNarrow : public Scif {};

TEST_F(ScifNarrow, AnAttemptThatFoundNoDescriptorsMayBeRepeated) {
  Child process([] {
    const Listening listening;
    const Epd epd;
    set_nonblocking(epd, true);
    scif_portID to = listening.port;
    {
      const NoDescriptors none;
      EXPECT_FAILS(EMFILE, scif_connect(epd, &to));
    }
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    const Epd other(listening.accept());
    EXPECT_GT(scif_connect(epd, &to), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(ScifNarrow, ARefusedAttemptMayBeRepeatedOnceThereAreDescriptorsAgain) {
  Child process([] {
    Listening listening;
    const Epd epd;
    set_nonblocking(epd, true);
    scif_portID to = listening.port;
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    {
      const NoDescriptors none;
      listening.epd.close();
      EXPECT_FAILS(ECONNREFUSED, scif_connect(epd, &to));
      EXPECT_FAILS(EMFILE, scif_connect(epd, &to));
      EXPECT_FAILS(EMFILE, scif_listen(epd, 1));
    }
    const Listening again;
    to = again.port;
    EXPECT_FAILS(EINPROGRESS, scif_connect(epd, &to));
    const Epd other(again.accept());
    EXPECT_GT(scif_connect(epd, &to), 0);
    return !::testing::Test::HasFailure();
  });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
