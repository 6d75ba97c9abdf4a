// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/commit/shard_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "adapters/root/merge/commit/journal.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::merge {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

TEST(ShardNames, ShardZeroIsTheOutput) {
  EXPECT_EQ(shard_path("a/out.root", 0), "a/out.root");
  EXPECT_EQ(output_of_shard("a/out.root"), std::nullopt);
}

TEST(ShardNames, AShardTellsItsOutput) {
  for (unsigned shard = 1; shard < kMostShards; ++shard) {
    EXPECT_THAT(output_of_shard(shard_path("a/out.root", shard)), Optional(Eq("a/out.root")));
  }
  EXPECT_THAT(output_of_shard(shard_path(shard_path("out", 2), 3)), Optional(Eq(shard_path("out", 2))));
}

TEST(ShardNames, OtherNamesAreNoShards) {
  for (const char* const name : {"out.shard-0.root", "out.shard-64.root", "out.shard-.root", "out.shard-1x.root",
                                 "out.shard-1", "out.shard-+1.root", "out.shard-1.root.journal", "shard-1.root"}) {
    EXPECT_EQ(output_of_shard(name), std::nullopt) << name;
  }
}

// Of a new file the last character is another until it has its name.
TEST(ShardNames, NewShardsAreNotConfusedWithEachOther) {
  const std::string one = shard_path("out.root", 1);
  const std::string two = shard_path("out.root", 2);
  EXPECT_NE(one.substr(0, one.size() - 1), two.substr(0, two.size() - 1));
}

void make_file(const std::string& path) { const std::ofstream file(path); }

TEST(ShardNames, WhatIsBesideAnOutputIsFoundByItselfAndByItsJournal) {
  const test::TemporaryDirectory directory;
  const std::string output = (directory.path() / "out.root").string();
  make_file(output);
  EXPECT_THAT(shards_beside(output), IsEmpty());
  make_file(shard_path(output, 12));
  make_file(Journal::path_of(shard_path(output, 3)));
  make_file(shard_path((directory.path() / "other.root").string(), 5));
  EXPECT_THAT(shards_beside(output), ElementsAre(3, 12));
}

}  // namespace
}  // namespace wherry::merge
