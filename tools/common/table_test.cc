// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <gtest/gtest.h>

namespace wherry::tools {
namespace {

Table example() {
  Table table({{"NAME"}, {"SIZE", Table::Align::right}, {"WHY"}});
  table.row({"a", "10", "short"});
  table.row({"longer", "5"});
  return table;
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(example().text(),
            "NAME    SIZE  WHY\n"
            "a         10  short\n"
            "longer     5\n");
}

TEST(Table, LinesAreCutToTheWidthAskedFor) {
  EXPECT_EQ(example().text(12),
            "NAME    SIZE\n"
            "a         10\n"
            "longer     5\n");
}

}  // namespace
}  // namespace wherry::tools
