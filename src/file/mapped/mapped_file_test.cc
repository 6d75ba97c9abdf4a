// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/mapped_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/in_child.hpp"
#include "tests/common/soak.hpp"
#include "tests/common/temporary_directory.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::file::mapped {
namespace {

using test::in_child;
using test::TemporaryDirectory;

constexpr std::size_t kPage = 4096;

std::string text_of(std::size_t bytes, char first) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; i++) text[i] = static_cast<char>(first + i / kPage % 26);
  return text;
}

/// A file of three and a half pages, and a reader of it.
class Mapped : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
    write_all(text_of(kSize, 'a'));
    fd_ = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    if (!can_be_mapped(fd_, status())) GTEST_SKIP() << "the file system of " << path() << " is not mapped";
  }
  void TearDown() override {
    if (fd_ >= 0) ::close(fd_);
  }

  static constexpr std::size_t kSize = 3 * kPage + kPage / 2;

  std::string path() const { return directory_.path() / "file"; }
  void write_all(const std::string& text) const {
    const int fd = ::open(path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  struct ::stat status() const {
    struct ::stat status{};
    EXPECT_EQ(::fstat(fd_, &status), 0);
    return status;
  }
  static void revoke(std::uintptr_t /*owner*/, std::uint32_t /*region*/) {}

  bool map(MappedFile& file) const {
    return catch_faults(::sigaction) && file.map(fd_, status(), static_cast<std::uintptr_t>(fd_), revoke);
  }
  /// Reads as a reader does: empty if the kernel must read.
  std::string read(MappedFile& file, std::uint64_t offset, std::size_t bytes) const {
    if (!file.is_fresh() && file.refresh(fd_, file.truncations()) != MappedFile::Look::usable) return "";
    std::string text(bytes, ' ');
    return file.has(offset, bytes) && file.copy(text.data(), offset, bytes) ? text : "";
  }
  /// Opens the file again, with a description that no other process shares.
  void open_again() {
    ::close(fd_);
    fd_ = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
  }
  void drop(MappedFile& file) const { file.drop(static_cast<std::uintptr_t>(fd_)); }
  bool is_in_memory() const {
    std::ifstream maps("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    return text.find(path()) != std::string::npos;
  }

  const TemporaryDirectory directory_;
  int fd_ = -1;
};

TEST_F(Mapped, WholePagesAreReadInPlaceAndTheEndIsTheKernels) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    EXPECT_EQ(read(file, 100, 2 * kPage), text_of(kSize, 'a').substr(100, 2 * kPage));
    EXPECT_EQ(read(file, 0, 3 * kPage), text_of(3 * kPage, 'a'));
    EXPECT_EQ(read(file, 1, 3 * kPage), "");
    EXPECT_EQ(read(file, kSize, 1), "");
    EXPECT_EQ(read(file, ~std::uint64_t{0}, 1), "");
    drop(file);
    EXPECT_EQ(read(file, 0, 1), "");
  });
}

TEST_F(Mapped, WhatIsWrittenIsReadAtOnceByWhateverWay) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 0, 1), "a");
    write_all("B");
    EXPECT_EQ(read(file, 0, 1), "B");
    void* const shared = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    ASSERT_NE(shared, MAP_FAILED);
    static_cast<char*>(shared)[0] = 'C';
    EXPECT_EQ(read(file, 0, 1), "C");
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage) == 0) {
      EXPECT_EQ(read(file, 0, 1), std::string(1, '\0'));
    }
  });
}

TEST_F(Mapped, ACountedTruncationIsSeenByTheNextRead) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, kPage, 10), std::string(10, 'b'));
    ASSERT_EQ(::ftruncate(fd_, kPage + 5), 0);
    note_truncation(status().st_dev, status().st_ino);
    EXPECT_EQ(read(file, kPage, 10), "") << "the kernel says five bytes";
    EXPECT_EQ(read(file, 0, 10), std::string(10, 'a'));
  });
}

TEST_F(Mapped, TruncationsAreCountedAcrossProcesses) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, kPage, 10), std::string(10, 'b'));
    in_child([this] {
      ASSERT_EQ(::truncate(path().c_str(), kPage + 5), 0);
      note_truncation(status().st_dev, status().st_ino);
    });
    EXPECT_EQ(read(file, kPage, 10), "");
  });
}

TEST_F(Mapped, ACounterWhosePageWasCutEndsNobodyWhoCounts) {
  in_child([] {
    const int fd = ::memfd_create("counters", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(fd, kPage), 0);
    void* const place = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(place, MAP_FAILED);
    auto& counter = *static_cast<TruncationCounter*>(place);
    count_in(counter);
    count_in(counter);
    EXPECT_EQ(counter, 2U);
    ASSERT_EQ(::ftruncate(fd, 0), 0);
    errno = EXDEV;
    count_in(counter);
    EXPECT_EQ(errno, EXDEV);
    std::uint32_t count = 0;
    ASSERT_TRUE(catch_faults(::sigaction));
    EXPECT_FALSE(read_counter(counter, count));
  });
}

TEST_F(Mapped, AnUncountedTruncationRaisesNoSignalAndIsSeenWhenTheSizeIsOld) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 0, 1), "a");
    ASSERT_EQ(::ftruncate(fd_, 5), 0);
    EXPECT_EQ(read(file, 2 * kPage, 10), "");
    EXPECT_FALSE(file.is_fresh()) << "the fault has told";
    ASSERT_EQ(file.refresh(fd_, file.truncations()), MappedFile::Look::usable);
    EXPECT_FALSE(file.has(0, 1));
  });
}

TEST_F(Mapped, ABufferThatMayNotBeWrittenIsTheKernelsToRefuse) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 0, 1), "a");
    EXPECT_FALSE(file.copy(nullptr, 0, 10));
    EXPECT_FALSE(file.copy(const_cast<char*>("constant"), 0, 3));
  });
}

TEST_F(Mapped, AFileThatGrowsIsReadToItsNewEnd) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 4 * kPage, 1), "");
    write_all(text_of(6 * kPage, 'a'));
    ASSERT_EQ(file.refresh(fd_, file.truncations()), MappedFile::Look::usable);
    EXPECT_EQ(read(file, 5 * kPage, kPage), std::string(kPage, 'f'));
    ASSERT_EQ(::ftruncate(fd_, off_t{64} << 20), 0);
    EXPECT_NE(file.refresh(fd_, file.truncations()), MappedFile::Look::other_file);
  });
}

TEST_F(Mapped, AnotherFileOfTheSameNumberIsNoticed) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    const int other = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(other, fd_), fd_);
    EXPECT_EQ(file.refresh(fd_, file.truncations()), MappedFile::Look::other_file);
  });
}

TEST_F(Mapped, LocksOfTheOpenFileAreFreeWhenItIsClosedAfterADrop) {
  in_child([this] {
    open_again();
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 0, 1), "a");
    ASSERT_EQ(::flock(fd_, LOCK_EX | LOCK_NB), 0);
    const int second = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    drop(file);
    ::close(fd_);
    EXPECT_EQ(::flock(second, LOCK_EX | LOCK_NB), 0) << "the mapping keeps it";
  });
}

TEST_F(Mapped, AFileThatOneThreadMapsWhileAnotherDropsItIsMappedAndKnownOrNeither) {
  in_child([this] {
    MappedFile file;
    std::atomic<bool> over = false;
    std::thread dropper([&] {
      while (!over) drop(file);
    });
    const int rounds = soaking() ? 1'000'000 : 20'000;
    const TimeLimit limit(std::chrono::seconds(10));
    for (int i = 0; i < rounds && !limit.over(); i++) ASSERT_TRUE(map(file));
    over = true;
    dropper.join();
    EXPECT_EQ(is_in_memory(), file.is_mapped());
    drop(file);
    EXPECT_FALSE(is_in_memory());
  });
}

TEST_F(Mapped, AForkedChildHasNoMappingThatWouldKeepTheOpenFile) {
  in_child([this] {
    open_again();
    MappedFile file;
    ASSERT_TRUE(map(file));
    ASSERT_EQ(read(file, 0, 1), "a");
    ASSERT_EQ(::flock(fd_, LOCK_EX | LOCK_NB), 0);
    std::array<int, 2> wait{};
    ASSERT_EQ(::pipe2(wait.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(fd_);
      ::close(wait[1]);
      char byte = 0;
      ::_exit(::read(wait[0], &byte, 1) == 0 ? 0 : 1);
    }
    drop(file);
    ::close(fd_);
    const int second = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    // Waits for the child, which closes its own descriptor as soon as it runs.
    EXPECT_EQ(::flock(second, LOCK_EX), 0);
    ::close(wait[1]);
    ::waitpid(child, nullptr, 0);
  });
}

TEST_F(Mapped, NothingIsMappedWhereTheAddressSpaceIsLimited) {
  in_child([this] {
    const rlimit limit{std::uint64_t{1} << 40, RLIM_INFINITY};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    MappedFile file;
    EXPECT_FALSE(map(file));
  });
}

TEST_F(Mapped, OneThatIsOpenToBeWrittenOnlyOrPastThePageCacheIsNotMapped) {
  const int write_only = ::open(path().c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_FALSE(can_be_mapped(write_only, status()));
  ::close(write_only);
  const int direct = ::open(path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (direct >= 0) {
    EXPECT_FALSE(can_be_mapped(direct, status()));
    ::close(direct);
  }
  const int proc = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  struct ::stat there{};
  ASSERT_EQ(::fstat(proc, &there), 0);
  EXPECT_FALSE(can_be_mapped(proc, there));
  ::close(proc);
}

TEST(MappedOnTmpfs, HolesAreTheKernels) {
  const int fd = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || !can_guard_copies()) GTEST_SKIP() << "no tmpfs";
  in_child([fd] {
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_EQ(::ftruncate(fd, 16 * kPage), 0);
    struct ::stat status{};
    ASSERT_EQ(::fstat(fd, &status), 0);
    MappedFile file;
    EXPECT_FALSE(file.map(fd, status, 0, nullptr));
    const std::string whole = text_of(16 * kPage, 'a');
    ASSERT_EQ(::pwrite(fd, whole.data(), whole.size(), 0), static_cast<ssize_t>(whole.size()));
    ASSERT_EQ(::fstat(fd, &status), 0);
    ASSERT_TRUE(file.map(fd, status, 0, nullptr));
    ASSERT_EQ(file.refresh(fd, file.truncations()), MappedFile::Look::usable);
    EXPECT_TRUE(file.has(0, 16 * kPage));
    ASSERT_EQ(::ftruncate(fd, 100 * kPage), 0);
    ASSERT_EQ(file.refresh(fd, file.truncations()), MappedFile::Look::usable);
    EXPECT_FALSE(file.has(0, 1)) << "a fault would allocate a page";
  });
  ::close(fd);
}

std::uintptr_t revoked_owner = 0;

TEST_F(Mapped, TheLeastRecentlyUsedMappingMakesRoom) {
  in_child([this] {
    ASSERT_TRUE(catch_faults(::sigaction));
    std::vector<Region> regions;
    const Revoke note = [](std::uintptr_t owner, std::uint32_t /*region*/) { revoked_owner = owner; };
    for (std::uint32_t i = 0; i < kMostRegions; i++) {
      regions.push_back(map_region(RegionsLock(), fd_, kPage, i, note));
      ASSERT_NE(regions.back().number, kNoRegion);
      touch_region(regions.back().number, i == 7 ? 1 : 100 + i);
    }
    EXPECT_EQ(revoked_owner, 0U);
    ASSERT_NE(map_region(RegionsLock(), fd_, kPage, 5000, note).number, kNoRegion);
    EXPECT_EQ(revoked_owner, 7U);
    unmap_region(RegionsLock(), regions[7].number, 7);  // the region has another owner by now
    unmap_region(RegionsLock(), regions[3].number, 3);
    EXPECT_EQ(map_region(RegionsLock(), fd_, kPage, 5001, note).number, regions[3].number);
    EXPECT_EQ(revoked_owner, 7U) << "there was a free place";
  });
}

TEST_F(Mapped, TheCounterOfAFileIsNoPlaceWhereAThreadIsCancelled) {
  in_child([] {
    std::thread([] {
      ::pthread_cancel(::pthread_self());
      (void)truncation_counter(1, 1);
      ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    }).join();
  });
}

TEST_F(Mapped, ReadersBesideTruncationsFindTheFilesBytesOnly) {
  in_child([this] {
    MappedFile file;
    ASSERT_TRUE(map(file));
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      for (int i = 0; i < 2000; i++) {
        (void)::ftruncate(fd_, i % 2 == 0 ? 0 : kPage);
        write_all(text_of(kSize, 'a'));
      }
      stop = true;
    });
    const std::string expected = text_of(kSize, 'a');
    while (!stop) {
      for (const std::size_t page : {0U, 1U, 2U}) {
        const std::string got = read(file, page * kPage, kPage);
        for (const char byte : got) ASSERT_TRUE(byte == expected[page * kPage] || byte == '\0');
      }
    }
    writer.join();
    ASSERT_EQ(file.refresh(fd_, file.truncations()), MappedFile::Look::usable);
    EXPECT_EQ(read(file, 0, 3 * kPage), expected.substr(0, 3 * kPage));
  });
}

}  // namespace
}  // namespace wherry::file::mapped
