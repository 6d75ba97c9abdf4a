// SPDX-License-Identifier: Apache-2.0
#include "file/mount/nodes.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "file/mount/open_file.hpp"

namespace wherry::file::mount {
namespace {

Identity directory(std::uint64_t inode) { return {.device = 1, .inode = inode, .type = S_IFDIR}; }
Identity file(std::uint64_t inode) { return {.device = 1, .inode = inode, .type = S_IFREG}; }

struct NodesTest : testing::Test {
  Nodes nodes{directory(2)};
  std::string path(NodeId node) { return nodes.path(node).value_or("none"); }
  [[nodiscard]] bool is_kept(NodeId node, Nodes::Time now) const {
    return nodes.kept_for(node, now) > Nodes::Clock::duration::zero();
  }
};

TEST_F(NodesTest, PathsAreMadeOfTheNamesThatWereLookedUp) {
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  const NodeId two = nodes.refer(one, "two", file(11));
  EXPECT_EQ(path(kRootNode), ".");
  EXPECT_EQ(path(one), "one");
  EXPECT_EQ(path(two), "one/two");
  EXPECT_EQ(nodes.path(one, "new"), "one/new");
  EXPECT_EQ(nodes.path(kRootNode, "new"), "new");
}

TEST_F(NodesTest, ARenamedDirectoryTakesAlongWhatIsBelowIt) {
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  const NodeId other = nodes.refer(kRootNode, "other", directory(12));
  const NodeId two = nodes.refer(one, "two", file(11));
  nodes.rename(kRootNode, "one", other, "moved", false);
  EXPECT_EQ(path(two), "other/moved/two");
  nodes.rename(other, "moved", kRootNode, "back", false);
  EXPECT_EQ(path(two), "back/two");
}

TEST_F(NodesTest, NamesAreExchanged) {
  const NodeId one = nodes.refer(kRootNode, "one", file(10));
  const NodeId two = nodes.refer(kRootNode, "two", directory(11));
  nodes.rename(kRootNode, "one", kRootNode, "two", true);
  EXPECT_EQ(path(one), "two");
  EXPECT_EQ(path(two), "one");
}

TEST_F(NodesTest, WhatARenameReplacesHasNoNameAnyMore) {
  const NodeId one = nodes.refer(kRootNode, "one", file(10));
  const NodeId two = nodes.refer(kRootNode, "two", file(11));
  nodes.rename(kRootNode, "one", kRootNode, "two", false);
  EXPECT_EQ(path(one), "two");
  EXPECT_EQ(path(two), "none");
}

TEST_F(NodesTest, HardLinksAreOneNodeAndAnyNameThatIsLeftLeadsToIt) {
  const NodeId one = nodes.refer(kRootNode, "one", file(10));
  EXPECT_EQ(nodes.refer(kRootNode, "two", file(10)), one);
  nodes.remove_name(kRootNode, "two");
  EXPECT_EQ(path(one), "one");
  nodes.remove_name(kRootNode, "one");
  EXPECT_EQ(path(one), "none");
}

TEST_F(NodesTest, ANameThatHasAnotherFileNowIsAnotherNode) {
  const NodeId old = nodes.refer(kRootNode, "name", file(10));
  const NodeId now = nodes.refer(kRootNode, "name", file(11));
  EXPECT_NE(old, now);
  EXPECT_EQ(path(old), "none");
  EXPECT_EQ(path(now), "name");
}

TEST_F(NodesTest, AnInodeNumberThatIsUsedAgainIsAnotherNode) {
  Identity first = file(10);
  first.born_seconds = 1;
  Identity second = file(10);
  second.born_seconds = 2;
  EXPECT_NE(nodes.refer(kRootNode, "name", first), nodes.refer(kRootNode, "name", second));
}

TEST_F(NodesTest, ADirectoryThatOthersHaveMovedHasItsNewNameOnly) {
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  nodes.refer(kRootNode, "moved", directory(10));
  EXPECT_EQ(path(one), "moved");
  nodes.remove_name(kRootNode, "moved");
  EXPECT_EQ(path(one), "none");
}

TEST_F(NodesTest, ForgottenNodesAreErasedOnceNothingIsBelowThem) {
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  nodes.refer(kRootNode, "one", directory(10));
  const NodeId two = nodes.refer(one, "two", file(11));
  nodes.forget(one, 2);
  EXPECT_EQ(path(two), "one/two");
  EXPECT_EQ(nodes.count(), 3U);
  nodes.forget(two, 1);
  EXPECT_EQ(nodes.count(), 1U);
  EXPECT_NE(nodes.refer(kRootNode, "one", directory(10)), one);
}

TEST_F(NodesTest, MoreForgottenThanReferredToHarmsNothing) {
  const NodeId one = nodes.refer(kRootNode, "one", file(10));
  nodes.forget(one, 1000);
  nodes.forget(one, 1);
  nodes.forget(kRootNode, 1000);
  EXPECT_EQ(path(kRootNode), ".");
  EXPECT_EQ(nodes.count(), 1U);
}

TEST_F(NodesTest, AnOpenFileKeepsItsNode) {
  const NodeId one = nodes.refer(kRootNode, "one", file(10));
  const auto open = std::make_shared<OpenFile>(nullptr, 0, 0);
  nodes.add_open(one, open);
  nodes.remove_name(kRootNode, "one");
  nodes.forget(one, 1);
  ASSERT_EQ(nodes.open_files(one).size(), 1U);
  EXPECT_EQ(nodes.refer(kRootNode, "again", file(10)), one);
  nodes.forget(one, 1);
  EXPECT_EQ(nodes.remove_open(one, open.get()), open);
  EXPECT_EQ(nodes.count(), 1U);
}

TEST_F(NodesTest, AListedDirectoryIsKeptForTheTimeThatIsLeft) {
  const Nodes::Time now = Nodes::Clock::now();
  nodes.note_list(kRootNode, now);
  EXPECT_EQ(nodes.kept_for(kRootNode, now), kKept);
  EXPECT_EQ(nodes.kept_for(kRootNode, now + kKept / 4), kKept * 3 / 4);
  EXPECT_EQ(nodes.kept_for(kRootNode, now + 2 * kKept), Nodes::Clock::duration::zero());
}

TEST_F(NodesTest, AListedDirectoryAndThoseAboveItAreKeptForAWhile) {
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  const NodeId two = nodes.refer(one, "two", directory(11));
  const NodeId below = nodes.refer(two, "below", directory(12));
  const Nodes::Time now = Nodes::Clock::now();
  EXPECT_FALSE(is_kept(two, now));
  nodes.note_list(two, now);
  EXPECT_TRUE(is_kept(two, now) && is_kept(one, now) && is_kept(kRootNode, now));
  EXPECT_FALSE(is_kept(below, now));
  EXPECT_FALSE(is_kept(two, now + kKept) || is_kept(kRootNode, now + kKept));
  nodes.refer(two, "one", directory(10));  // a cycle
  nodes.note_list(two, now + kKept);
  EXPECT_TRUE(is_kept(two, now + kKept) && is_kept(one, now + kKept));
}

TEST_F(NodesTest, NamesThatLeadInACircleAreNoPath) {
  // Two directories, each of which was looked up in the other after others had moved them.
  const NodeId one = nodes.refer(kRootNode, "one", directory(10));
  const NodeId two = nodes.refer(one, "two", directory(11));
  nodes.refer(two, "one", directory(10));
  EXPECT_EQ(path(two), "none");
}

TEST_F(NodesTest, APathIsRemovedIfTheNodeStillHasIt) {
  const NodeId node = nodes.refer(kRootNode, "old", file(10));
  nodes.refer(kRootNode, "new", file(10));
  nodes.remove_path(node, "old");
  EXPECT_EQ(path(node), "new");
  nodes.remove_path(node, "new");
  EXPECT_EQ(path(node), "old");
  nodes.remove_path(node, "old");
  EXPECT_EQ(path(node), "none");
  nodes.remove_path(node, "old");
}

}  // namespace
}  // namespace wherry::file::mount
