// SPDX-License-Identifier: Apache-2.0
#include "file/server/tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <wherry/error.hpp>

#include "base/child_process.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {
namespace {

namespace fs = std::filesystem;

class FileTree : public ::testing::Test {
 protected:
  FileTree() {
    fs::create_directories(root_ / "inside");
    fs::create_directory(outside_);
    std::ofstream(outside_ / "secret") << "secret";
    std::ofstream(root_ / "file") << "file";
    fs::create_symlink("../outside", root_ / "out");
    fs::create_symlink(outside_, root_ / "absolute");
    fs::create_symlink("../outside/secret", root_ / "secret");
    fs::create_symlink("../outside/new", root_ / "dangling");
    fs::create_symlink("inside", root_ / "in");
    fs::create_symlink("/proc/self/root", root_ / "magic");
  }

  /// Every name below `directory`, with its type, mode, time and content.
  static std::map<std::string, std::string> listing(const fs::path& directory) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      struct stat status{};
      ::lstat(entry.path().c_str(), &status);
      found[entry.path().string()] = std::to_string(status.st_mode) + " " + std::to_string(status.st_mtim.tv_sec) +
                                     "." + std::to_string(status.st_mtim.tv_nsec) + " " +
                                     std::to_string(status.st_nlink) +
                                     (entry.is_regular_file() ? content_of(entry.path()) : "");
    }
    return found;
  }

  test::TemporaryDirectory directory_;
  fs::path root_ = directory_.path() / "root";
  fs::path outside_ = directory_.path() / "outside";
};

TEST_F(FileTree, NoNameLeadsOut) {
  const Tree tree(root_.string());
  const std::vector<std::string> names{"..",
                                       "../outside/secret",
                                       "../outside/new",
                                       "inside/../../outside/secret",
                                       "./../outside/new",
                                       "/etc/passwd",
                                       "/",
                                       "//",
                                       outside_ / "secret",
                                       root_ / "file",
                                       "out/secret",
                                       "out/new",
                                       "out/",
                                       "absolute/secret",
                                       "absolute/new",
                                       "secret",
                                       "dangling",
                                       "in/../../outside/new",
                                       "magic/etc/passwd",
                                       "inside/../out/secret"};
  const auto before = listing(outside_);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(tree.open(name, O_RDONLY, 0).valid());
    EXPECT_TRUE(errno == EXDEV || errno == ELOOP) << errno;
    EXPECT_FALSE(tree.open(name, O_RDWR | O_CREAT | O_TRUNC, 0666).valid());
    EXPECT_FALSE(tree.look_up(name, true).valid());
    const bool link_itself = name == "secret" || name == "dangling" || name == "out/";
    if (!link_itself) {
      EXPECT_NE(tree.make_directory(name, 0777), 0);
      EXPECT_NE(tree.remove(name, false), 0);
      EXPECT_NE(tree.remove(name, true), 0);
      EXPECT_NE(tree.rename(name, "stolen", 0), 0);
      EXPECT_NE(tree.rename("file", name, 0), 0);
      EXPECT_NE(tree.rename("file", name, RENAME_EXCHANGE), 0);
      EXPECT_NE(tree.link(name, "stolen"), 0);
      EXPECT_NE(tree.link("file", name), 0);
      EXPECT_NE(tree.symlink(name, "file"), 0);
    }
  }
  // A link to the outside is an object inside: it may be made, read, moved and removed, but not followed.
  EXPECT_EQ(tree.symlink("another", "/etc/passwd"), 0);
  std::string target;
  EXPECT_EQ(tree.read_link("another", target), 0);
  EXPECT_EQ(target, "/etc/passwd");
  EXPECT_FALSE(tree.open("another", O_RDONLY, 0).valid());
  EXPECT_EQ(tree.link("secret", "moved"), 0);
  EXPECT_FALSE(tree.open("moved", O_RDONLY, 0).valid());
  EXPECT_EQ(tree.rename("out", "elsewhere", 0), 0);
  EXPECT_EQ(tree.remove("dangling", false), 0);
  EXPECT_NE(tree.remove("elsewhere/", true), 0);
  EXPECT_EQ(tree.remove("elsewhere", false), 0);
  EXPECT_EQ(listing(outside_), before);
  EXPECT_EQ(content_of(root_ / "file"), "file");
}

TEST_F(FileTree, LinksThatStayInsideAreFollowed) {
  const Tree tree(root_.string());
  EXPECT_TRUE(tree.open("in/new", O_RDWR | O_CREAT | O_EXCL, 0600).valid());
  EXPECT_TRUE(fs::exists(root_ / "inside/new"));
  EXPECT_TRUE(tree.open("inside/../in/../file", O_RDONLY, 0).valid());
  EXPECT_TRUE(tree.open(".", O_RDONLY | O_DIRECTORY, 0).valid());
  EXPECT_FALSE(tree.open("in", O_RDONLY | O_NOFOLLOW, 0).valid());
  EXPECT_EQ(errno, ELOOP);
}

TEST_F(FileTree, ARenameAtTheSameMomentLeadsNowhereElse) {
  const Tree tree(root_.string());
  fs::create_directory(root_ / "turning");
  std::atomic<bool> done = false;
  std::thread turner([&] {
    // The name alternates between a directory and a link to the outside.
    const std::string one = root_ / "turning";
    const std::string other = root_ / "out";
    while (!done) ::syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  });
  const auto before = listing(outside_);
  int made = 0;
  int refused = 0;
  for (int i = 0; i < 200'000 && (i < 3000 || made < 100 || refused < 100); ++i) {
    const std::string name = "turning/" + std::to_string(i % 8);
    const UniqueFd file = tree.open(name, O_RDWR | O_CREAT, 0600);
    ++(file.valid() ? made : refused);
    (void)tree.open("turning/secret", O_RDWR | O_TRUNC, 0);
    (void)tree.remove("turning/secret", false);
    (void)tree.make_directory("turning/new", 0700);
    (void)tree.rename("file", "turning/file", 0);
    (void)tree.rename("turning/file", "file", 0);
    (void)tree.open("turning/../../outside/new", O_RDWR | O_CREAT, 0600);
  }
  done = true;
  turner.join();
  EXPECT_GT(made, 0);
  EXPECT_EQ(listing(outside_), before);
}

/// Whether the kernel has reported an open of the watched object since the last call.
bool was_opened(const UniqueFd& watch) {
  alignas(inotify_event) std::array<char, 4096> events;
  return ::read(watch.get(), events.data(), events.size()) > 0;
}

TEST_F(FileTree, WhatIsNeitherFileNorDirectoryIsRefusedBeforeItIsOpened) {
  const Tree tree(root_.string());
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", root_ / "link");
  std::vector<std::string> names{"pipe", "link", "socket"};
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (root_ / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  // Only root may make a device.
  if (::mknod((root_ / "device").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) names.emplace_back("device");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    ASSERT_GE(::inotify_add_watch(watch.get(), (root_ / name).c_str(), IN_OPEN), 0);
    for (const int flags :
         {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT, O_WRONLY | O_TRUNC, O_WRONLY | O_CREAT | O_TRUNC}) {
      EXPECT_FALSE(tree.open(name, flags, 0600).valid());
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
    EXPECT_FALSE(tree.open(name, O_RDONLY | O_DIRECTORY, 0).valid());
    EXPECT_EQ(errno, ENOTDIR);
    EXPECT_FALSE(tree.open(name, O_RDWR | O_CREAT | O_EXCL, 0600).valid());
    EXPECT_EQ(errno, EEXIST);
    EXPECT_FALSE(was_opened(watch));
    EXPECT_TRUE(tree.look_up(name, true).valid());
  }
}

TEST_F(FileTree, OpensAsOpenDoes) {
  const Tree tree(root_.string());
  fs::create_symlink("made", root_ / "to nothing");
  const auto error_of = [&tree](const std::string& name, int flags) {
    return tree.open(name, flags, 0600).valid() ? 0 : errno;
  };
  EXPECT_EQ(error_of("missing", O_RDONLY), ENOENT);
  EXPECT_EQ(error_of("missing/file", O_RDWR | O_CREAT), ENOENT);
  EXPECT_EQ(error_of("file", O_RDWR | O_CREAT | O_EXCL), EEXIST);
  EXPECT_EQ(error_of("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
  EXPECT_EQ(error_of("file/", O_RDONLY), ENOTDIR);
  EXPECT_EQ(error_of("inside", O_RDONLY), 0);
  EXPECT_EQ(error_of("inside", O_RDWR), EISDIR);
  EXPECT_EQ(error_of("inside", O_RDONLY | O_CREAT), EISDIR);
  EXPECT_EQ(error_of("in", O_RDONLY | O_NOFOLLOW), ELOOP);
  EXPECT_EQ(error_of("in", O_RDWR | O_CREAT | O_NOFOLLOW), ELOOP);
  EXPECT_EQ(error_of("to nothing", O_RDWR | O_CREAT | O_NOFOLLOW), ELOOP);
  EXPECT_EQ(error_of("to nothing", O_RDWR | O_CREAT | O_EXCL), EEXIST);
  EXPECT_EQ(error_of("to nothing", O_RDWR), ENOENT);
  EXPECT_FALSE(fs::exists(root_ / "made"));
  EXPECT_EQ(error_of("to nothing", O_RDWR | O_CREAT), 0);
  EXPECT_TRUE(fs::exists(root_ / "made"));
  const UniqueFd file = tree.open("file", O_WRONLY | O_APPEND | O_CREAT | O_TRUNC, 0600);
  EXPECT_EQ(::fcntl(file.get(), F_GETFL) & (O_ACCMODE | O_APPEND), O_WRONLY | O_APPEND);
  EXPECT_EQ(::fcntl(file.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(content_of(root_ / "file"), "");
}

TEST_F(FileTree, ASlashBehindANameAsksForADirectory) {
  const Tree tree(root_.string());
  EXPECT_EQ(tree.remove("file/", false), ENOTDIR);
  EXPECT_EQ(tree.rename("file/", "other", 0), ENOTDIR);
  EXPECT_EQ(tree.rename("file", "other/", 0), ENOTDIR);
  EXPECT_EQ(tree.link("file/", "other"), ENOTDIR);
  EXPECT_EQ(tree.make_directory("new/", 0755), 0);
  EXPECT_EQ(tree.rename("new/", "newer/", 0), 0);
  EXPECT_EQ(tree.remove("newer//", true), 0);
  EXPECT_EQ(tree.remove("", false), ENOENT);
  EXPECT_EQ(tree.remove(".", true), EINVAL);
}

TEST_F(FileTree, ModesAndTimesAreChangedOfWhatWasLookedUp) {
  const Tree tree(root_.string());
  const UniqueFd file = tree.look_up("file", true);
  EXPECT_EQ(change_mode(file.get(), 0640), 0);
  EXPECT_EQ(change_times(file.get(), {{1, 2}, {3, 4}}), 0);
  struct stat status{};
  ASSERT_EQ(::stat((root_ / "file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
  EXPECT_EQ(status.st_mtim.tv_sec, 3);
  EXPECT_EQ(status.st_mtim.tv_nsec, 4);
  EXPECT_NE(change_mode(tree.look_up("secret", false).get(), 0777), 0);
}

TEST_F(FileTree, WithoutOpenat2ItIsRefusedWithWords) {
  Child sandboxed([&] {
    refuse_calls({SYS_openat2}, ENOSYS);
    try {
      const Tree tree(root_.string());
    } catch (const Error& error) {
      return error.code().value() == ENOSYS && error.advice() ==
                                                   "the system call openat2, which keeps clients below the directory, "
                                                   "is needed: Linux 5.6 or later, and a "
                                                   "sandbox that allows it";
    }
    return false;
  });
  EXPECT_EQ(sandboxed.wait(), 0);
}

TEST_F(FileTree, WithoutProcItIsRefusedWithWords) {
  Child sandboxed([&] {
    refuse_calls({SYS_faccessat, SYS_faccessat2}, ENOENT);
    try {
      const Tree tree(root_.string());
    } catch (const Error& error) {
      return error.code().value() == ENOENT &&
             error.advice() == "mount /proc: files are checked through it before they are opened";
    }
    return false;
  });
  EXPECT_EQ(sandboxed.wait(), 0);
}

TEST_F(FileTree, ADirectoryThatIsNotThereIsRefusedWithWords) {
  try {
    const Tree tree((root_ / "nowhere").string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_EQ(error.advice(), "name a directory that this user may enter");
  }
}

}  // namespace
}  // namespace wherry::file
