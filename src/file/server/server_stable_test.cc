// SPDX-License-Identifier: Apache-2.0
// The server tells a client whether a file that it opens is stable: a client then knows later whether it has changed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;
using namespace std::chrono_literals;

class StableFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path()) << "content";
    if (!has_leases(path())) GTEST_SKIP() << "no leases here: " << std::strerror(errno);
  }
  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  bool is_stable(std::uint32_t flags = kFileOpenRead | kFileOpenTellStable) {
    const Host::Opened opened = host_.open("file", flags);
    EXPECT_EQ(opened.error, 0);
    EXPECT_EQ(host_.close(opened.handle), 0);
    return opened.is_stable;
  }
  /// A changed file becomes stable after some time.
  void wait_until_stable() {
    while (!is_stable()) std::this_thread::sleep_for(1ms);
  }

  ServedDirectory served_;
  Host host_{served_.client()};
};

TEST_F(StableFiles, AFileThatNobodyWritesIsStable) { wait_until_stable(); }

TEST_F(StableFiles, OnlyAClientThatAsksIsTold) {
  wait_until_stable();
  EXPECT_FALSE(is_stable(kFileOpenRead));
}

TEST_F(StableFiles, AFileThatWasChangedJustNowIsNotStable) {
  for (int i = 0; i < 100; i++) {
    const auto begun = std::chrono::steady_clock::now();
    std::ofstream(path()) << i;
    // Changes within a tick of the kernel's clock, of up to 10 ms, may have the same time.
    EXPECT_TRUE(!is_stable() || std::chrono::steady_clock::now() - begun > 10ms);
  }
}

TEST_F(StableFiles, AFileThatIsOpenForWritingIsNotStable) {
  wait_until_stable();
  {
    const UniqueFd writer(::open(path().c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(writer.valid());
    EXPECT_FALSE(is_stable());
  }
  EXPECT_TRUE(is_stable());
  EXPECT_FALSE(is_stable(kFileOpenRead | kFileOpenWrite | kFileOpenTellStable));
}

TEST_F(StableFiles, AFileThatIsMappedForWritingIsNotStable) {
  wait_until_stable();
  UniqueFd writer(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  void* const memory = ::mmap(nullptr, 7, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  writer = UniqueFd();
  EXPECT_FALSE(is_stable());
  ::munmap(memory, 7);
  EXPECT_TRUE(is_stable());
}

TEST_F(StableFiles, TheServerKeepsNoLease) {
  wait_until_stable();
  const Host::Opened opened = host_.open("file", kFileOpenRead | kFileOpenTellStable);
  EXPECT_TRUE(opened.is_stable);
  const UniqueFd writer(::open(path().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(writer.valid()) << std::strerror(errno);
}

}  // namespace
}  // namespace wherry::file
