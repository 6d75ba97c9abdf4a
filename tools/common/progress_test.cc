// SPDX-License-Identifier: Apache-2.0
#include "common/progress.hpp"

#include <gtest/gtest.h>

namespace wherry::tools {
namespace {

TEST(Progress, TheBarIsEmptyWhenTheTotalIsUnknownAndNeverOverFull) {
  EXPECT_EQ(Progress::bar(5, 0), "");
  EXPECT_EQ(Progress::bar(50, 100), "[############            ]  50%");
  EXPECT_EQ(Progress::bar(200, 100), "[########################] 100%");
}

}  // namespace
}  // namespace wherry::tools
