// SPDX-License-Identifier: Apache-2.0
#include "collect/open_directories.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fstream>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "tests/common/seccomp.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

int refusal_of(std::string_view path) {
  try {
    check_path(path);
    return 0;
  } catch (const Refusal& refusal) {
    return refusal.error();
  }
}

TEST(CheckPath, TakesPlainRelativePaths) {
  for (const char* path : {"a", "a/b", "...", "..a", "a..", ".hidden", ".wherry-partial", "a/.wherry", " ", "a\nb"}) {
    EXPECT_EQ(refusal_of(path), 0) << path;
  }
  EXPECT_EQ(refusal_of(std::string(4095, 'x')), 0);
}

TEST(CheckPath, RefusesEverythingElse) {
  using namespace std::string_view_literals;
  for (const auto path : {""sv, "."sv, ".."sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "../a"sv, "a/.."sv, "a/../b"sv, "./a"sv,
                          "a\0b"sv, ".wherry-partial.1"sv, ".wherry-partial.1/a"sv, "a/.wherry-partial."sv}) {
    EXPECT_EQ(refusal_of(path), EINVAL) << path;
  }
  EXPECT_EQ(refusal_of(std::string(4096, 'x')), ENAMETOOLONG);
}

class OpenDirectoriesTest : public testing::Test {
 protected:
  OpenDirectories make(std::size_t capacity) {
    return OpenDirectories(UniqueFd(::open(root_.path().c_str(), O_RDONLY | O_DIRECTORY)), capacity);
  }
  void note(std::string_view path, int) { opened_.emplace_back(path); }
  auto noting() {
    return [this](std::string_view path, int descriptor) { note(path, descriptor); };
  }

  test::TemporaryDirectory root_;
  std::vector<std::string> opened_;
};

TEST_F(OpenDirectoriesTest, MakesWhatIsMissingAndOpensEachDirectoryOnce) {
  OpenDirectories open = make(10);
  const auto first = open.enter("a/b/c", noting());
  const auto second = open.enter("a/b/c", noting());
  open.enter("a/b/d", noting());
  EXPECT_EQ(first, second);
  EXPECT_TRUE(std::filesystem::is_directory(root_.path() / "a/b/d"));
  EXPECT_EQ(opened_, (std::vector<std::string>{"a", "a/b", "a/b/c", "a/b/d"}));
}

TEST_F(OpenDirectoriesTest, KeepsTheLatestUsed) {
  OpenDirectories open = make(2);
  open.enter("a", noting());
  open.enter("b", noting());
  open.enter("a", noting());
  open.enter("c", noting());
  opened_.clear();
  open.enter("a", noting());
  open.enter("b", noting());
  EXPECT_EQ(opened_, std::vector<std::string>{"b"});
}

TEST_F(OpenDirectoriesTest, ADirectoryInUseOutlivesItsPlaceInTheCache) {
  OpenDirectories open = make(1);
  const auto used = open.enter("a", noting());
  open.enter("b", noting());
  open.forget();
  EXPECT_NE(::fcntl(used->get(), F_GETFD), -1);
}

TEST_F(OpenDirectoriesTest, NeverGoesThroughASymbolicLinkOrAFile) {
  const test::TemporaryDirectory outside;
  std::filesystem::create_directory_symlink(outside.path(), root_.path() / "link");
  std::ofstream(root_.path() / "file") << "x";
  OpenDirectories open = make(10);
  for (const auto& [path, error] :
       {std::pair{"link", ELOOP}, {"link/a", ELOOP}, {"file", ENOTDIR}, {"file/a", ENOTDIR}}) {
    try {
      open.enter(path, noting());
      ADD_FAILURE() << path;
    } catch (const Refusal& refusal) {
      EXPECT_EQ(refusal.error(), error) << path << ": " << refusal.what();
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
  EXPECT_FALSE(open.open_existing("link").valid());
}

TEST_F(OpenDirectoriesTest, WhatExistsIsOpenedWithOneCallOrWhereThatIsRefusedWithMany) {
  const OpenDirectories open = make(1);
  std::filesystem::create_directories(root_.path() / "a/b/c");
  std::filesystem::create_directory_symlink("b", root_.path() / "a/link");
  const auto opens_what_exists = [&open] {
    return open.open_existing("").valid() && open.open_existing("a/b/c").valid() &&
           !open.open_existing("a/x").valid() && errno == ENOENT && !open.open_existing("a/link/c").valid();
  };
  for (const auto& [call, error] : {std::pair{SYS_openat, EPERM}, {SYS_openat2, ENOSYS}, {SYS_openat2, EPERM}}) {
    Child child([&, refused = call, answer = error] { return refuse({refused}, answer) && opens_what_exists(); });
    EXPECT_EQ(child.wait(), 0) << call << ' ' << error;
  }
}

TEST_F(OpenDirectoriesTest, ManyThreadsMayEnterTheSameDirectories) {
  OpenDirectories open = make(3);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&open] {
      for (int round = 0; round < 200; ++round) {
        open.enter("d" + std::to_string(round % 7) + "/e", [](std::string_view, int) {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int number = 0; number < 7; ++number) {
    EXPECT_TRUE(open.open_existing("d" + std::to_string(number) + "/e").valid());
  }
}

}  // namespace
}  // namespace wherry::tools
