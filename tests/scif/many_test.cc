// SPDX-License-Identifier: Apache-2.0
// Many endpoints in one process.
#include <sys/resource.h>

#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifMany : public Scif {};

constexpr std::size_t kPairs = 500;
constexpr off_t kWindows = 256;

/// In a process of its own, so that its thousand endpoints and their memory are gone afterwards.
bool a_thousand_work() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<Pair> pairs(kPairs);
  Pages pages(kWindows);
  for (const Pair& pair : pairs) {
    for (const scif_epd_t epd : {static_cast<int>(pair.connector), static_cast<int>(pair.acceptor)}) {
      for (off_t i = 0; i < kWindows; ++i) {
        if (scif_register(epd, pages.at(i * kStep), kPage, i * kStep, kRw, SCIF_MAP_FIXED) != i * kStep) return false;
      }
    }
  }
  std::vector<char> bytes(kWindows * kPage);
  int seed = 0;
  for (const Pair& pair : pairs) {
    fill(bytes.data(), bytes.size(), ++seed);
    if (scif_vwriteto(pair.connector, bytes.data(), bytes.size(), 0, 0) != 0) return false;
    if (!is_filled(pages, bytes.size(), seed)) return false;
    if (send_text(pair.acceptor, "hello") != 5 || receive_text(pair.connector, 5) != "hello") return false;
  }
  return !::testing::Test::HasFailure();
}

TEST_F(ScifMany, AThousandEndpointsWith256WindowsEachWork) {
  Child process([] { return a_thousand_work(); });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
