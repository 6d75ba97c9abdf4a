// SPDX-License-Identifier: Apache-2.0
#include "collect/file_system.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

UniqueFd open_directory(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

TEST(FileSystems, DirectoriesOfOneMountShareOne) {
  const test::TemporaryDirectory root;
  std::filesystem::create_directory(root.path() / "below");
  FileSystems all;
  const auto file_system = all.of(open_directory(root.path()).get());
  EXPECT_EQ(all.of(open_directory(root.path() / "below").get()), file_system);
  EXPECT_NE(all.of(open_directory("/proc").get()), file_system);
}

TEST(FileSystems, OneThatNobodyUsesIsLetGo) {
  const test::TemporaryDirectory root;
  FileSystems all;
  const std::weak_ptr<FileSystem> file_system = all.of(open_directory(root.path()).get());
  EXPECT_TRUE(file_system.expired());
  EXPECT_NE(all.of(open_directory(root.path()).get()), nullptr);
}

TEST(FileSystem, ThreadsThatFlushAtOnceAllReturn) {
  const test::TemporaryDirectory root;
  FileSystem file_system(open_directory(root.path()));
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) good += file_system.flush() == 0 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8 * 3);
}

}  // namespace
}  // namespace wherry::tools
