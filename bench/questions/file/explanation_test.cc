// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/file/explanation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "stream/statistics.hpp"

namespace wherry::bench::file {
namespace {

using ::testing::HasSubstr;

TEST(ChosenWays, AreThoseOfThisProcessesPage) {
  layout::TransferClass* const shown = statistics::transfer_classes();
  ASSERT_NE(shown, nullptr);
  const std::size_t place = layout::transfer_class(layout::TransferKind::write, true, false, 4);
  const auto counts = std::make_unique<WayCounts>();
  read_own_ways(*counts);
  EXPECT_TRUE(used_ways(*counts).empty());
  shown[place].host.calls = 7;
  shown[place].host.bytes = 7 << 20;
  shown[place].host.estimate_ns = 250'500;
  shown[place].kernel.explored = 1;
  read_own_ways(*counts);
  const auto ways = used_ways(*counts);
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(ways[0].place, place);
  const std::string text = explain(ways);
  for (const char* part :
       {"writes in order", "from 1 MiB", "host 250.5 us (7 calls, 7.3 MB", "mount not measured", "chosen: host"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  shown[place].kernel.calls = 1;
  shown[place].kernel.estimate_ns = 100'000;
  read_own_ways(*counts);
  EXPECT_THAT(explain(used_ways(*counts)), HasSubstr("chosen: mount"));
}

}  // namespace
}  // namespace wherry::bench::file
