// SPDX-License-Identifier: Apache-2.0
// Reads of wherry::files that copy from the kernel's page cache.
#include <wherry/files.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/in_child.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {
namespace {

using files::Path;

class FilesInPlace : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  void make(const std::string& name, std::size_t bytes) const { write_file(path(name), pattern_.bytes(bytes)); }

  const Pattern pattern_{5};
  const test::TemporaryDirectory directory_;
};

/// The number of read system calls of this thread, as counted by the kernel.
std::uint64_t reads_of_kernel() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  std::uint64_t count = 0;
  while (file >> word && word != "syscr:") continue;
  file >> count;
  return count;
}

/// The number of reads of a file that made no system call.
std::uint64_t in_place(files::File& file, const Pattern& pattern, Path path, int calls) {
  std::array<std::byte, 4096> got;
  const std::uint64_t before = reads_of_kernel();
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t offset = static_cast<std::uint64_t>(i) % 20 * got.size();
    EXPECT_EQ(file.pread(got, offset, path).bytes, got.size());
    EXPECT_TRUE(pattern.matches(got, offset));
  }
  const std::uint64_t seen = reads_of_kernel() - before;
  return static_cast<std::uint64_t>(calls) - std::min<std::uint64_t>(seen, static_cast<std::uint64_t>(calls));
}

constexpr int kCalls = 20'000;

TEST_F(FilesInPlace, AFileThatIsReadRepeatedlyIsReadWithoutTheKernelUnlessThePathSaysSo) {
  if (!mapped::can_guard_copies()) GTEST_SKIP() << "this processor's files are read by the kernel";
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY);
    EXPECT_LT(in_place(file, pattern_, Path::kernel, kCalls), kCalls / 10U);
    EXPECT_GT(in_place(file, pattern_, Path::automatic, kCalls), kCalls / 2U);
    EXPECT_GT(in_place(file, pattern_, Path::cache, kCalls), kCalls * 9 / 10U);
  });
}

TEST_F(FilesInPlace, AForkedChildReadsInPlaceToo) {
  if (!mapped::can_guard_copies()) GTEST_SKIP() << "this processor's files are read by the kernel";
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    EXPECT_GT(in_place(file, pattern_, Path::cache, kCalls), kCalls / 2U);
    const auto read_in_child = [&] {
      // Memory at the address of the parent's mapping must not be taken for the file.
      void* const other = ::mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(other, MAP_FAILED);
      std::memset(other, 0xee, 4 << 20);
      EXPECT_GT(in_place(file, pattern_, Path::cache, kCalls), kCalls / 2U);
      EXPECT_EQ(std::count(static_cast<char*>(other), static_cast<char*>(other) + (4 << 20), '\xee'), 4 << 20);
    };
    test::in_child(read_in_child);
    test::in_child(read_in_child, ::_Fork);
    EXPECT_GT(in_place(file, pattern_, Path::cache, kCalls), kCalls / 2U);
  });
}

void block(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

TEST_F(FilesInPlace, AThreadThatBlocksAFaultsSignalIsServedByTheKernel) {
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    for (const bool has_read : {false, true}) {
      std::thread([&] {
        if (has_read) (void)in_place(file, pattern_, Path::cache, kCalls);
        block(SIGBUS);
        if (has_read) ::usleep(20'000);  // the known mask has expired
        EXPECT_EQ(in_place(file, pattern_, Path::cache, kCalls), 0U);
      }).join();
    }
  });
}

TEST_F(FilesInPlace, AHandlerThatTheProgramInstallsLaterEndsReadingInPlace) {
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    (void)in_place(file, pattern_, Path::cache, kCalls);
    ::signal(SIGBUS, [](int) { ::_exit(7); });
    ::usleep(20'000);  // the known action has expired
    EXPECT_LT(in_place(file, pattern_, Path::cache, kCalls), 10U);
  });
}

volatile std::sig_atomic_t own_faults = 0;

TEST_F(FilesInPlace, AHandlerThatTheProgramInstalledBeforeStillGetsItsFaults) {
  make("file", 100'000);
  in_client([&] {
    static sigjmp_buf back;
    ::signal(SIGSEGV, [](int) {
      own_faults = own_faults + 1;
      ::siglongjmp(back, 1);
    });
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    (void)in_place(file, pattern_, Path::cache, kCalls);
    void* const none = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(back, 1) == 0) *static_cast<volatile char*>(none) = 1;
    EXPECT_EQ(own_faults, 1);
    EXPECT_EQ(file.pread({static_cast<std::byte*>(none), 4096}, 0).error, EFAULT);
    EXPECT_EQ(own_faults, 1);
  });
}

TEST_F(FilesInPlace, AFileThatIsMadeShorterIsReadToItsEndAndNoFurther) {
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    files::File writer = files::open(path("file"), O_RDWR);
    (void)in_place(file, pattern_, Path::cache, kCalls);
    std::array<std::byte, 4096> got;
    for (std::uint64_t size = 99'000; size > 10'000; size -= 1000) {
      EXPECT_TRUE(writer.set_size(size));
      const std::uint64_t offset = size - 1000;
      EXPECT_EQ(file.pread(got, offset).bytes, 1000U);
      EXPECT_TRUE(pattern_.matches(std::span(got).first(1000), offset));
      EXPECT_TRUE(file.pread(got, size).ended());
    }
  });
}

TEST_F(FilesInPlace, LocksThatTheProgramHoldsStayThroughReadsAndClosingEndsThoseOfTheFile) {
  make("file", 100'000);
  in_client([&] {
    const int own = ::open(path("file").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(own, F_SETLK, &lock), 0);
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    (void)in_place(file, pattern_, Path::cache, kCalls);
    in_client([&] {
      struct flock asked{};
      asked.l_type = F_WRLCK;
      const int other = ::open(path("file").c_str(), O_RDWR | O_CLOEXEC);
      EXPECT_EQ(::fcntl(other, F_GETLK, &asked), 0);
      EXPECT_EQ(asked.l_type, F_WRLCK) << "the lock is gone";
    });
    EXPECT_TRUE(file.close());
    std::filesystem::remove(path("file"));
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    EXPECT_EQ(all.find(path("file")), std::string::npos) << "a closed file is mapped";
    ::close(own);
  });
}

TEST_F(FilesInPlace, WhatOthersChangedIsSeenAtOnce) {
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    std::vector<std::byte> got(50'000);
    for (std::uint64_t i = 0; i < 200; ++i) {
      const UniqueFd other(::open(path("file").c_str(), O_RDWR | O_CLOEXEC));
      if (i % 2 == 0) {
        const auto data = pattern_.bytes(60'000, i);
        ASSERT_EQ(::pwrite(other.get(), data.data(), data.size(), 0), 60'000);
      } else {
        void* const shared = ::mmap(nullptr, 60'000, PROT_READ | PROT_WRITE, MAP_SHARED, other.get(), 0);
        ASSERT_NE(shared, MAP_FAILED);
        std::ranges::copy(pattern_.bytes(60'000, i), static_cast<std::byte*>(shared));
        ::munmap(shared, 60'000);
      }
      EXPECT_EQ(file.pread(got, 0).bytes, got.size());
      EXPECT_TRUE(pattern_.matches(got, i)) << i;
    }
  });
}

}  // namespace
}  // namespace wherry::file
