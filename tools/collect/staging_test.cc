// SPDX-License-Identifier: Apache-2.0
#include "collect/staging.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "collect/refusal.hpp"
#include "tests/common/temporary_directory.hpp"

namespace {

// An action that runs once, just before this thread locks a file, or removes a lock file.
thread_local std::function<void()> before_lock;
thread_local std::function<void()> before_removing_lock;

void run_once(std::function<void()>& what) {
  if (const auto now = std::exchange(what, {})) now();
}

}  // namespace

// Replaces the C library's functions, to run an action between two system calls. A race would hit that moment once in a
// million runs. By its own name flock would hide a struct.
extern "C" int flock_here(int descriptor, int operation) noexcept __asm__("flock");
extern "C" int flock_here(int descriptor, int operation) noexcept {
  run_once(before_lock);
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

extern "C" int unlinkat(int directory, const char* name, int flags) noexcept {
  if (name == std::string_view("lock") || name == std::string_view("ended")) run_once(before_removing_lock);
  return static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags));
}

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

class StagingTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(root_.path())) found.push_back(entry.path().filename());
    return found;
  }
  static void store(const Staging& staging, const std::string& name) {
    const UniqueFd file(::openat(staging.get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600));
    EXPECT_TRUE(file.valid());
  }
  /// A collector that is killed with a file in its staging directory.
  void leave_one_behind() {
    SharedValue<std::atomic<int>> ready;
    Child child([&] {
      Staging staging(top_.get());
      store(staging, staging.new_name());
      ready->store(1);
      ready->notify_one();
      ::pause();
      return true;
    });
    while (ready->load() == 0) std::this_thread::yield();
    child.kill();
    child.wait();
  }

  test::TemporaryDirectory root_;
  UniqueFd top_{::open(root_.path().c_str(), O_RDONLY | O_DIRECTORY)};
};

TEST_F(StagingTest, IsPrivateAndGoneInTheEnd) {
  {
    const Staging staging(top_.get());
    ASSERT_EQ(names().size(), 1U);
    EXPECT_TRUE(names()[0].starts_with(kStagingPrefix));
    EXPECT_EQ(fs::status(root_.path() / names()[0]).permissions(), fs::perms::owner_all);
  }
  EXPECT_TRUE(names().empty());
}

// Collectors in two containers may have the same process id; in this test they have.
TEST_F(StagingTest, TwoCollectorsDoNotGetIntoEachOthersWay) {
  Staging one(top_.get());
  Staging other(top_.get());
  store(one, one.new_name());
  store(other, other.new_name());
  EXPECT_EQ(names().size(), 2U);
  ::unlinkat(one.get(), "0", 0);
  ::unlinkat(other.get(), "0", 0);
}

TEST_F(StagingTest, WhatADeadCollectorLeftIsRemovedAndALivingOnesIsNot) {
  leave_one_behind();
  EXPECT_EQ(names().size(), 1U);
  Staging living(top_.get());
  store(living, "file");
  Staging::remove_stale(top_.get());
  EXPECT_EQ(names().size(), 1U);
  EXPECT_EQ(::unlinkat(living.get(), "file", 0), 0);
}

TEST_F(StagingTest, WhatIsOnlyCalledSoIsLeftAlone) {
  const fs::path outside = root_.path() / "outside";
  fs::create_directory(outside);
  std::ofstream(outside / "precious") << "x";
  fs::create_directory_symlink(outside, root_.path() / (std::string(kStagingPrefix) + "link"));
  const fs::path open_to_all = root_.path() / (std::string(kStagingPrefix) + "open");
  fs::create_directory(open_to_all);
  fs::permissions(open_to_all, fs::perms::all);
  std::ofstream(open_to_all / "lock") << "";
  std::ofstream(root_.path() / (std::string(kStagingPrefix) + "file")) << "x";
  Staging::remove_stale(top_.get());
  EXPECT_TRUE(fs::exists(outside / "precious"));
  EXPECT_TRUE(fs::exists(open_to_all / "lock"));
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(StagingTest, OneThatIsNewIsNotRemovedByWhoHeldItsLockAMomentBefore) {
  std::binary_semaphore made(0);
  std::binary_semaphore released(0);
  std::binary_semaphore in_use(0);
  std::thread remover([&] {
    made.acquire();
    before_removing_lock = [&] {
      released.release();
      in_use.acquire();
    };
    Staging::remove_stale(top_.get());
  });
  before_lock = [&] {
    made.release();
    released.acquire();
  };
  const Staging staging(top_.get());
  in_use.release();
  remover.join();
  ASSERT_EQ(names().size(), 1U);
  store(staging, "file");
  EXPECT_TRUE(fs::exists(root_.path() / names()[0] / "file"));
}

TEST_F(StagingTest, OneWhoseRemoverWasKilledIsRemovedByTheNext) {
  const fs::path ending = root_.path() / (std::string(kStagingPrefix) + "ending");
  fs::create_directory(ending);
  fs::permissions(ending, fs::perms::owner_all);
  for (const char* name : {"ended", "0"}) std::ofstream(ending / name) << "x";
  Staging::remove_stale(top_.get());
  EXPECT_TRUE(names().empty());
}

TEST_F(StagingTest, CollectorsThatComeAndCleanUpAtOnceAllGetOne) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int round = 0; round < 100; ++round) {
        Staging::remove_stale(top_.get());
        Staging staging(top_.get());
        store(staging, "file");
        EXPECT_EQ(::unlinkat(staging.get(), "file", 0), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace wherry::tools
