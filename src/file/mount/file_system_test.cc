// SPDX-License-Identifier: Apache-2.0
// Calls on nodes whose names other clients have given to other files meanwhile.
#include "file/mount/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

struct FileSystemTest : testing::Test {
  NodeId look_up(NodeId parent, const std::string& name) {
    Entry entry;
    EXPECT_EQ(system.look_up(parent, name, entry), 0);
    return entry.node;
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(served.root() / name) << text; }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(served.root() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// A node whose name another file has now.
  NodeId replaced() {
    put("file", "old");
    const NodeId node = look_up(kRootNode, "file");
    put("other", "other");
    std::filesystem::rename(served.root() / "other", served.root() / "file");
    return node;
  }
  int open(NodeId node, int flags) {
    OpenFile* file = nullptr;
    const int error = system.open(node, flags, file);
    if (error == 0) system.close(node, file);
    return error;
  }

  ServedDirectory served;
  FileSystem system{served.client(), 2};
};

TEST_F(FileSystemTest, ATruncationByOpenDoesNotCutAnotherFileThatHasTheName) {
  const NodeId node = replaced();
  EXPECT_EQ(open(node, O_WRONLY | O_TRUNC), ESTALE);
  EXPECT_EQ(open(node, O_RDONLY | O_TRUNC), ESTALE);
  EXPECT_EQ(text_of("file"), "other");
}

TEST_F(FileSystemTest, OpenTruncatesTheFileItself) {
  for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY}) {
    put("file", "text");
    EXPECT_EQ(open(look_up(kRootNode, "file"), flags | O_TRUNC), 0);
    EXPECT_EQ(text_of("file"), "");
  }
}

TEST_F(FileSystemTest, AnotherFileThatHasTheNameIsNotChanged) {
  const NodeId node = replaced();
  struct stat before{};
  ASSERT_EQ(::stat((served.root() / "file").c_str(), &before), 0);
  struct stat ignored{};
  EXPECT_EQ(system.change(node, {.mode = 0111}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.change(node, {.size = 0}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.change(node, {.user = 1, .group = 1}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.change(node, {.times = layout::FileTimes{}}, nullptr, ignored), ESTALE);
  EXPECT_EQ(text_of("file"), "other");
  struct stat after{};
  ASSERT_EQ(::stat((served.root() / "file").c_str(), &after), 0);
  EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
  EXPECT_EQ(after.st_mode, before.st_mode);
}

TEST_F(FileSystemTest, ANameThatLeadsNowhereAnyMoreIsStale) {
  std::filesystem::create_directory(served.root() / "folder");
  put("folder/file", "text");
  const NodeId node = look_up(look_up(kRootNode, "folder"), "file");
  struct stat attributes{};
  const auto expect_stale = [&] {
    EXPECT_EQ(system.attributes(node, attributes), ESTALE);
    EXPECT_EQ(open(node, O_RDONLY), ESTALE);
    EXPECT_EQ(system.change(node, {.mode = 0600}, nullptr, attributes), ESTALE);
  };
  std::filesystem::remove(served.root() / "folder/file");
  expect_stale();
  std::filesystem::create_symlink("nowhere", served.root() / "folder/file");
  expect_stale();
  std::filesystem::remove_all(served.root() / "folder");
  put("folder", "a file");
  expect_stale();
}

/// The leak sanitizer looks for what is left.
TEST_F(FileSystemTest, DirectoriesThatAreOpenAtTheEndAreFreed) {
  OpenDirectory* closed = nullptr;
  OpenDirectory* left = nullptr;
  ASSERT_EQ(system.open_directory(kRootNode, closed), 0);
  ASSERT_EQ(system.open_directory(kRootNode, left), 0);
  system.close_directory(closed);
  int entries = 0;
  EXPECT_EQ(left->list(0, [&](const Host::Entry&) { return ++entries > 0; }), 0);
  EXPECT_GE(entries, 2);
}

}  // namespace
}  // namespace wherry::file::mount
