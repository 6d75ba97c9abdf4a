// SPDX-License-Identifier: Apache-2.0
#include "base/readable.hpp"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(Readable, BytesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(human_bytes(0.0), "0 B");
  EXPECT_EQ(human_bytes(999.0), "999 B");
  EXPECT_EQ(human_bytes(1000.0), "1.0 kB");
  EXPECT_EQ(human_bytes(999'499.0), "999 kB");
  EXPECT_EQ(human_bytes(999'500.0), "1.0 MB");
  EXPECT_EQ(human_bytes(123'456'789'000.0), "123 GB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.4 EB");
}

TEST(Readable, WhatIsLittleIsNotShownAsNothing) {
  EXPECT_EQ(human_bytes(0.25), "0.25 B");
  EXPECT_EQ(human_bytes(0.001), "0.001 B");
  EXPECT_EQ(human_bytes(12.5), "12.5 B");
  EXPECT_EQ(human_rate(5, 0.001), "5.0 kB/s");
  EXPECT_EQ(human_rate(1, 3600), "0.00028 B/s");
  EXPECT_EQ(human_rate(5, 0), "-");
  EXPECT_EQ(human_time(0.0000171), "17 us");
  EXPECT_EQ(human_time(0.0042), "4.2 ms");
  EXPECT_EQ(human_time(0.312), "312 ms");
  EXPECT_EQ(human_time(61.5), "61.50 s");
}

TEST(Readable, NounsAreCounted) {
  EXPECT_EQ(counted(1, "directory"), "1 directory");
  EXPECT_EQ(counted(0, "directory"), "0 directories");
  EXPECT_EQ(counted(2, "file"), "2 files");
  EXPECT_EQ(counted(2, "batch"), "2 batches");
}

}  // namespace
}  // namespace wherry
