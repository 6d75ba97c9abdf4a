// SPDX-License-Identifier: Apache-2.0
#include "file/mount/cached_pages.hpp"

#include <gtest/gtest.h>

namespace wherry::file::mount {
namespace {

CachedPages::State state(std::uint64_t size) {
  layout::FileStatus status{};
  status.size = size;
  return CachedPages::state_of(status);
}

TEST(CachedPagesTest, HoldNothingAtFirst) { EXPECT_FALSE(CachedPages().hold(state(0))); }

TEST(CachedPagesTest, HoldTheStateThatWasRecordedLast) {
  CachedPages pages;
  pages.record({.state = state(1), .writes = pages.writes()});
  EXPECT_TRUE(pages.hold(state(1)));
  pages.record({.state = state(2), .writes = pages.writes()});
  EXPECT_TRUE(pages.hold(state(2)));
  EXPECT_FALSE(pages.hold(state(1)));
}

TEST(CachedPagesTest, AnotherSizeOrTimeIsAnotherState) {
  CachedPages pages;
  layout::FileStatus status{};
  status.size = 1;
  status.modified = {.seconds = 1, .nanoseconds = 2, .reserved = 0};
  status.changed = {.seconds = 3, .nanoseconds = 4, .reserved = 0};
  pages.record({.state = CachedPages::state_of(status), .writes = pages.writes()});
  layout::FileStatus other = status;
  EXPECT_TRUE(pages.hold(CachedPages::state_of(other)));
  for (layout::FileTime* const time : {&other.modified, &other.changed}) {
    time->seconds++;
    EXPECT_FALSE(pages.hold(CachedPages::state_of(other)));
    time->seconds--;
    time->nanoseconds++;
    EXPECT_FALSE(pages.hold(CachedPages::state_of(other)));
    time->nanoseconds--;
  }
  other.size++;
  EXPECT_FALSE(pages.hold(CachedPages::state_of(other)));
}

TEST(CachedPagesTest, AWriteEndsWhatWasRecordedAndWhatWasToBeRecorded) {
  CachedPages pages;
  const CachedPages::Opened before{.state = state(1), .writes = pages.writes()};
  pages.record(before);
  pages.note_write();
  EXPECT_FALSE(pages.hold(state(1)));
  pages.record(before);
  EXPECT_FALSE(pages.hold(state(1)));
  pages.record({.state = state(1), .writes = pages.writes()});
  EXPECT_TRUE(pages.hold(state(1)));
}

}  // namespace
}  // namespace wherry::file::mount
