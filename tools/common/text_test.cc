// SPDX-License-Identifier: Apache-2.0
#include "common/text.hpp"

#include <gtest/gtest.h>

#include "common/progress.hpp"

namespace wherry::tools {
namespace {

TEST(Text, ControlCharactersDoNotReachATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(printable("\u00fcml\u00e4ut"), "\u00fcml\u00e4ut");
}

TEST(Text, BytesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(999'499), "999 kB");
  EXPECT_EQ(human_bytes(999'500), "1.0 MB");
  EXPECT_EQ(human_bytes(123'456'789'000), "123 GB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.4 EB");
}

TEST(Text, NounsAreCounted) {
  EXPECT_EQ(counted(1, "directory"), "1 directory");
  EXPECT_EQ(counted(0, "directory"), "0 directories");
  EXPECT_EQ(counted(2, "file"), "2 files");
}

TEST(Progress, TheBarIsEmptyWhenTheTotalIsUnknownAndNeverOverFull) {
  EXPECT_EQ(Progress::bar(5, 0), "");
  EXPECT_EQ(Progress::bar(50, 100), "[############            ]  50%");
  EXPECT_EQ(Progress::bar(200, 100), "[########################] 100%");
}

}  // namespace
}  // namespace wherry::tools
