// SPDX-License-Identifier: Apache-2.0
// Two connected endpoints, each with windows.
#pragma once

#include "tests/scif/pages.hpp"

namespace wherry::scif_test {

inline constexpr off_t kNear = 0x100000;
inline constexpr off_t kFar = 0x200000;

/// Each side has registered 64 pages, in windows of 16: the acceptor at kNear, the connector at kFar.
struct Spaces {
  static constexpr std::size_t kBytes = 64 * kPage;
  explicit Spaces(int protection = kRw) {
    for (std::size_t at = 0; at < kBytes; at += kBytes / 4) {
      const auto step = static_cast<off_t>(at);
      EXPECT_EQ(scif_register(pair.acceptor, near.at(at), kBytes / 4, kNear + step, kRw, SCIF_MAP_FIXED), kNear + step);
      EXPECT_EQ(scif_register(pair.connector, far.at(at), kBytes / 4, kFar + step, protection, SCIF_MAP_FIXED),
                kFar + step);
    }
  }
  Pages near{64};
  Pages far{64};
  Pair pair;
  scif_epd_t epd = pair.acceptor;
};

}  // namespace wherry::scif_test
