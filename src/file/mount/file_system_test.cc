// SPDX-License-Identifier: Apache-2.0
// Calls on nodes whose names other clients have meanwhile given to other files.
#include "file/mount/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

struct FileSystemTest : testing::Test {
  NodeId look_up(NodeId parent, const std::string& name) {
    Entry entry;
    EXPECT_EQ(system.names().look_up(parent, name, entry), 0);
    return entry.node;
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(served.root() / name) << text; }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(served.root() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// A node whose name now leads to another file.
  NodeId replaced() {
    put("file", "old");
    const NodeId node = look_up(kRootNode, "file");
    put("other", "other");
    std::filesystem::rename(served.root() / "other", served.root() / "file");
    return node;
  }
  int open(NodeId node, int flags) {
    OpenFile* file = nullptr;
    const int error = system.files().open(node, flags, file);
    if (error == 0) system.files().close(node, file);
    return error;
  }

  ServedDirectory served;
  FileSystem system{served.client(), 2, WriteBuffer::make(0)};
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
  EXPECT_EQ(system.attributes().change(node, {.mode = 0111}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.attributes().change(node, {.size = 0}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.attributes().change(node, {.user = 1, .group = 1}, nullptr, ignored), ESTALE);
  EXPECT_EQ(system.attributes().change(node, {.times = layout::FileTimes{}}, nullptr, ignored), ESTALE);
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
    EXPECT_EQ(system.attributes().get(node, attributes), ESTALE);
    EXPECT_EQ(open(node, O_RDONLY), ESTALE);
    EXPECT_EQ(system.attributes().change(node, {.mode = 0600}, nullptr, attributes), ESTALE);
  };
  std::filesystem::remove(served.root() / "folder/file");
  expect_stale();
  std::filesystem::create_symlink("nowhere", served.root() / "folder/file");
  expect_stale();
  std::filesystem::remove_all(served.root() / "folder");
  put("folder", "a file");
  expect_stale();
}

/// Leaks are left to the leak sanitizer.
TEST_F(FileSystemTest, ALinkWhoseNameAnotherFileHasIsStale) {
  std::filesystem::create_symlink("target", served.root() / "link");
  const NodeId node = look_up(kRootNode, "link");
  std::string target;
  ASSERT_EQ(system.names().read_link(node, target), 0);
  EXPECT_EQ(target, "target");
  std::filesystem::remove(served.root() / "link");
  EXPECT_EQ(system.names().read_link(node, target), ESTALE) << "none has it";
  put("link", "text");
  EXPECT_EQ(system.names().read_link(node, target), ESTALE);
}

TEST_F(FileSystemTest, DirectoriesThatAreOpenAtTheEndAreFreed) {
  OpenDirectory* closed = nullptr;
  OpenDirectory* left = nullptr;
  ASSERT_EQ(system.directories().open(kRootNode, closed), 0);
  ASSERT_EQ(system.directories().open(kRootNode, left), 0);
  system.directories().close(*closed);
  std::vector<ListedEntry> listed;
  EXPECT_EQ(system.directories().list(kRootNode, *left, 0, 4096, listed), 0);
  EXPECT_EQ(listed.size(), 2U);
}

/// All names of the directory, by as many requests as the kernel sends with a buffer of this size.
std::map<std::string, ListedEntry> list_all(FileSystem& system, NodeId node, std::size_t room) {
  OpenDirectory* directory = nullptr;
  EXPECT_EQ(system.directories().open(node, directory), 0);
  std::map<std::string, ListedEntry> all;
  std::vector<ListedEntry> some;
  for (std::uint64_t cookie = 0; system.directories().list(node, *directory, cookie, room, some) == 0 && !some.empty();
       some.clear()) {
    cookie = some.back().entry.cookie;
    for (ListedEntry& one : some) EXPECT_TRUE(all.emplace(one.entry.name, one).second) << one.entry.name;
  }
  system.directories().close(*directory);
  return all;
}

TEST(FileSystemLists, OneRequestGivesTheAttributesOfManyFiles) {
  const ServedDirectory served;
  std::filesystem::create_directory(served.root() / "folder");
  constexpr int kFiles = 2000;
  for (int i = 0; i < kFiles; ++i)
    std::ofstream(served.root() / "folder" / std::to_string(i)) << std::string(static_cast<std::size_t>(i), 'x');
  std::atomic<int> requests{0};
  FileSystem system(served.client([&](FaultPoint where) { requests += where == FaultPoint::request_sent ? 1 : 0; }), 1,
                    WriteBuffer::make(0));
  Entry folder;
  ASSERT_EQ(system.names().look_up(kRootNode, "folder", folder), 0);
  requests = 0;
  const auto all = list_all(system, folder.node, 32 << 10);
  EXPECT_LT(requests, kFiles / 100) << "of 32 KiB each";
  ASSERT_EQ(all.size(), kFiles + 2U);
  EXPECT_FALSE(all.at(".").known || all.at("..").known);
  for (int i = 0; i < kFiles; ++i) {
    const ListedEntry& one = all.at(std::to_string(i));
    ASSERT_TRUE(one.known) << i;
    EXPECT_EQ(one.known->attributes.st_size, i);
    EXPECT_EQ(one.known->attributes.st_ino, one.entry.inode);
  }
  Entry again;
  EXPECT_EQ(system.names().look_up(folder.node, "7", again), 0);
  EXPECT_EQ(again.node, all.at("7").known->node);
}

TEST_F(FileSystemTest, ListsOfAnyRoomHaveEachNameOnceAndFit) {
  for (int i = 0; i < 300; ++i) put(std::to_string(i) + std::string(static_cast<std::size_t>(i * 7 % 240), 'n'), "");
  for (const std::size_t room : {std::size_t{1000}, std::size_t{4096}, std::size_t{1} << 20})
    EXPECT_EQ(list_all(system, kRootNode, room).size(), 302U) << room;
  OpenDirectory* directory = nullptr;
  ASSERT_EQ(system.directories().open(kRootNode, directory), 0);
  std::vector<ListedEntry> listed;
  EXPECT_EQ(system.directories().list(kRootNode, *directory, 0, 100, listed), EINVAL);
}

TEST_F(FileSystemTest, AttributesOfFilesThatAreOpenAreNotKept) {
  put("open", "text");
  put("closed", "text");
  std::vector<NodeId> dropped;
  system.tree().set_drop([&](NodeId node, Kept what) {
    if (what == Kept::attributes) dropped.push_back(node);
  });
  const NodeId node = look_up(kRootNode, "open");
  OpenFile* file = nullptr;
  ASSERT_EQ(system.files().open(node, O_RDONLY, file), 0);
  EXPECT_EQ(dropped, std::vector<NodeId>{node});
  const auto all = list_all(system, kRootNode, 4096);
  EXPECT_EQ(all.at("open").known.value().attributes_kept_for, Nodes::Clock::duration::zero());
  EXPECT_EQ(all.at("closed").known.value().attributes_kept_for, kKept);
  system.files().close(node, file);
}

TEST_F(FileSystemTest, DirectoriesThatAreLookedUpAreKeptAndNamesOfFilesAreNot) {
  std::filesystem::create_directory(served.root() / "folder");
  put("file", "text");
  Entry folder;
  ASSERT_EQ(system.names().look_up(kRootNode, "folder", folder), 0);
  EXPECT_EQ(folder.name_kept_for, kDirectoriesKept);
  EXPECT_EQ(folder.attributes_kept_for, kDirectoriesKept);
  Entry file;
  ASSERT_EQ(system.names().look_up(kRootNode, "file", file), 0);
  EXPECT_EQ(file.name_kept_for, Nodes::Clock::duration::zero());
  EXPECT_EQ(file.attributes_kept_for, kOfOneCall);
  OpenFile* open = nullptr;
  ASSERT_EQ(system.files().open(file.node, O_RDONLY, open), 0);
  ASSERT_EQ(system.names().look_up(kRootNode, "file", file), 0);
  EXPECT_EQ(file.attributes_kept_for, Nodes::Clock::duration::zero());
  system.files().close(file.node, open);
}

TEST_F(FileSystemTest, DirectoriesAreNotKeptLongerForBeingAskedFor) {
  const auto listed = Nodes::Clock::now();
  list_all(system, kRootNode, 4096);
  struct stat attributes{};
  Nodes::Clock::duration kept_for{};
  ASSERT_EQ(system.attributes().get(kRootNode, attributes, kept_for), 0);
  const auto after = Nodes::Clock::now();
  EXPECT_LT(kept_for, kKept);
  EXPECT_TRUE(kept_for > Nodes::Clock::duration::zero() || after - listed >= kKept);
}

TEST_F(FileSystemTest, NothingIsKeptOfWhatIsAskedForDuringAChange) {
  put("file", "text");
  std::filesystem::create_directory(served.root() / "folder");
  std::filesystem::create_directory(served.root() / "changing");
  const NodeId folder = look_up(kRootNode, "folder");
  const NodeId changed = look_up(kRootNode, "changing");
  std::atomic<bool> over{false};
  std::thread changing([&] {
    for (Entry made; !over;) {
      EXPECT_EQ(system.names().symlink(changed, "link", "target", made), 0);
      EXPECT_EQ(system.names().remove(changed, "link", false), 0);
    }
  });
  const auto none = Nodes::Clock::duration::zero();
  bool list = false;
  bool name = false;
  bool attributes = false;
  for (int i = 0; i < 10'000 && !(list && name && attributes); ++i) {
    list |= list_all(system, kRootNode, 4096).at("file").known.value().attributes_kept_for == none;
    const auto before = Nodes::Clock::now();
    list_all(system, folder, 4096);
    Entry entry;
    EXPECT_EQ(system.names().look_up(kRootNode, "folder", entry), 0);
    struct stat ignored{};
    Nodes::Clock::duration kept_for{};
    EXPECT_EQ(system.attributes().get(folder, ignored, kept_for), 0);
    if (Nodes::Clock::now() - before >= kKept) continue;
    name |= entry.attributes_kept_for == none;
    attributes |= kept_for == none;
  }
  over = true;
  changing.join();
  EXPECT_TRUE(list && name && attributes) << list << name << attributes;
  EXPECT_GT(list_all(system, kRootNode, 4096).at("file").known.value().attributes_kept_for, none);
}

TEST_F(FileSystemTest, TheDirectoryOfTheMountPointIsListedWithoutAttributes) {
  std::filesystem::create_directory(served.root() / "here");
  put("beside", "text");
  system.tree().hide((served.root() / "here").string());
  const auto all = list_all(system, kRootNode, 4096);
  EXPECT_EQ(all.size(), 4U);
  EXPECT_FALSE(all.at("here").known || all.at("beside").known);
}

}  // namespace
}  // namespace wherry::file::mount
