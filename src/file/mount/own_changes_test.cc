// SPDX-License-Identifier: Apache-2.0
#include "file/mount/own_changes.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace wherry::file::mount {
namespace {

TEST(OwnChangesTest, DisturbALookIfTheyAreUnderWayMeanwhile) {
  OwnChanges changes;
  {
    const OwnChanges::Change before(changes);
  }
  const OwnChanges::Look look(changes);
  EXPECT_TRUE(look.is_undisturbed());
  std::optional<OwnChanges::Change> change(changes);
  EXPECT_FALSE(look.is_undisturbed()) << "it has begun";
  const OwnChanges::Look during(changes);
  EXPECT_FALSE(during.is_undisturbed());
  change.reset();
  EXPECT_FALSE(look.is_undisturbed()) << "it has begun and ended";
  EXPECT_FALSE(during.is_undisturbed()) << "it was under way at first";
  EXPECT_TRUE(OwnChanges::Look(changes).is_undisturbed());
}

}  // namespace
}  // namespace wherry::file::mount
