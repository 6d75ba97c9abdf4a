// SPDX-License-Identifier: Apache-2.0
#include "collect/pending_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/child_process.hpp"
#include "tests/common/seccomp.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t entries_in(const fs::path& path) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

FileSystem& file_system_of(Destination& destination) { return *destination.place("x").directory->file_system; }

// The files in the staging directories of `into`; each directory also has its lock.
std::size_t staged_in(const fs::path& into) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(into)) {
    if (entry.path().filename().string().starts_with(kStagingPrefix)) count += entries_in(entry.path()) - 1;
  }
  return count;
}

// Runs all tests with unnamed files (O_TMPFILE) and, for filesystems without them, with staged files.
class PendingFileTest : public testing::TestWithParam<bool> {
 protected:
  PendingFileTest() : destination_((root_.path() / "into").string(), true) {
    if (!GetParam()) file_system_of(destination_).no_unnamed_files();
  }

  void write_and_complete(const std::string& name, const std::string& text) {
    PendingFile file(destination_, destination_.place(name));
    file.write(bytes_of(text), 0);
    file.complete(text.size(), 0644, {1, 2});
    file.give_name();
  }

  test::TemporaryDirectory root_;
  Destination destination_;
  fs::path into_ = root_.path() / "into";
};

TEST_P(PendingFileTest, HasNoNameUntilItIsComplete) {
  const std::string text = "content";
  PendingFile file(destination_, destination_.place("a/name"));
  file.write(bytes_of(text), 0);
  file.complete(text.size(), 0640, {1'000'000'000, 123'456'789});
  EXPECT_FALSE(fs::exists(into_ / "a/name"));
  file.give_name();
  EXPECT_EQ(content_of(into_ / "a/name"), text);
  struct stat status{};
  ASSERT_EQ(::stat((into_ / "a/name").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(status.st_mtim.tv_nsec, 123'456'789);
}

TEST_P(PendingFileTest, LeavesNothingWhenItIsGivenUp) {
  {
    PendingFile file(destination_, destination_.place("name"));
    file.write(bytes_of("half"), 0);
    EXPECT_EQ(staged_in(into_), GetParam() ? 0U : 1U);
  }
  EXPECT_FALSE(fs::exists(into_ / "name"));
  EXPECT_EQ(staged_in(into_), 0U);
}

TEST_P(PendingFileTest, ReplacesAFileOrSymlinkButNoDirectory) {
  fs::create_directory(into_ / "directory");
  std::ofstream(root_.path() / "elsewhere") << "untouched";
  fs::create_symlink(root_.path() / "elsewhere", into_ / "link");
  std::ofstream(into_ / "file") << "old";
  write_and_complete("file", "new");
  write_and_complete("link", "new");
  EXPECT_THROW(write_and_complete("directory", "new"), Refusal);
  EXPECT_EQ(content_of(into_ / "file"), "new");
  EXPECT_FALSE(fs::is_symlink(into_ / "link"));
  EXPECT_EQ(content_of(root_.path() / "elsewhere"), "untouched");
  EXPECT_EQ(staged_in(into_), 0U);
}

TEST_P(PendingFileTest, ItsLengthMayEndInAHole) {
  PendingFile file(destination_, destination_.place("name"));
  file.write(bytes_of("x"), 5000);
  file.complete(10'000, 0644, {1, 2});
  file.give_name();
  EXPECT_EQ(content_of(into_ / "name"), std::string(5000, '\0') + "x" + std::string(4999, '\0'));
}

INSTANTIATE_TEST_SUITE_P(AllKinds, PendingFileTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "unnamed" : "staged"; });

// Refuses the calls as gVisor, WSL and the seccomp filters of containers do.
class RefusedSyncTest : public testing::TestWithParam<std::pair<long, int>> {};

TEST_P(RefusedSyncTest, AFileIsFlushedWithoutThisCall) {
  const test::TemporaryDirectory root;
  Child child([&] {
    if (!refuse({GetParam().first}, GetParam().second)) return false;
    Destination destination((root.path() / "into").string(), true);
    PendingFile file(destination, destination.place("name"));
    file.write(bytes_of("content"), 0);
    file.complete(7, 0644, {1, 2});
    file.check_flushed(file.file_system().flush());
    file.give_name();
    return file.file_system().each_file_flushed();
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(content_of(root.path() / "into/name"), "content");
}

INSTANTIATE_TEST_SUITE_P(AllKinds, RefusedSyncTest,
                         testing::Values(std::pair{SYS_sync_file_range, ENOSYS}, std::pair{SYS_sync_file_range, EPERM},
                                         std::pair{SYS_syncfs, ENOSYS}, std::pair{SYS_syncfs, EPERM}));

TEST(Destination, SettlesDirectoriesWhenTheLastShipperLeft) {
  const test::TemporaryDirectory root;
  Destination destination((root.path() / "into").string(), true);
  const auto mode_of = [&](const char* path) { return fs::status(root.path() / "into" / path).permissions(); };
  destination.shipper_came();
  destination.shipper_came();
  destination.make_directory("a", 0500, {1, 2});
  destination.make_directory("a/b", 0550, {3, 4});
  EXPECT_TRUE(destination.shipper_left().empty());
  EXPECT_EQ(mode_of("a"), fs::perms{0700});
  EXPECT_TRUE(destination.shipper_left().empty());
  EXPECT_EQ(mode_of("a"), fs::perms{0500});
  EXPECT_EQ(mode_of("a/b"), fs::perms{0550});
  // A later shipper may store in them, and they are settled again.
  destination.shipper_came();
  PendingFile file(destination, destination.place("a/b/c"));
  EXPECT_EQ(mode_of("a/b"), fs::perms{0750});
  file.complete(0, 0644, {5, 6});
  file.give_name();
  EXPECT_TRUE(destination.shipper_left().empty());
  EXPECT_EQ(mode_of("a/b"), fs::perms{0550});
  fs::permissions(root.path() / "into/a", fs::perms{0700});
  fs::permissions(root.path() / "into/a/b", fs::perms{0700});
}

}  // namespace
}  // namespace wherry::tools
