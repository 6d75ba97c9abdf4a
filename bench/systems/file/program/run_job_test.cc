// SPDX-License-Identifier: Apache-2.0
// What the programs of `wherry bench file` do: that a wrong byte is found, and that a pass is what the job says.
#include "bench/systems/file/program/run_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/systems/file/program/kernel_file.hpp"
#include "bench/systems/file/program/positioned.hpp"
#include "bench/systems/file/program/two_copies.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench::file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

/// Notes what it is asked for.
struct NotedFile {
  std::vector<std::pair<std::uint64_t, std::size_t>> calls{};
  int flushes = 0;
  std::uint64_t offset = 0;
  std::uint64_t salt = 0;
  ssize_t missing = 0;
  std::uintptr_t within_page = 0;

  void rewind() { offset = 0; }
  ssize_t move(std::size_t bytes) {
    calls.emplace_back(offset, bytes);
    offset += bytes;
    return static_cast<ssize_t>(bytes) - missing;
  }
  ssize_t read(std::span<std::byte> to) {
    within_page |= reinterpret_cast<std::uintptr_t>(to.data()) % 4096;
    fill({reinterpret_cast<std::uint64_t*>(to.data()), to.size() / 8}, salt, offset);
    return move(to.size());
  }
  ssize_t write(std::span<const std::byte> from) { return move(from.size()); }
  ssize_t read_at(std::uint64_t at, std::span<std::byte> to) {
    offset = at;
    return read(to);
  }
  ssize_t write_at(std::uint64_t at, std::span<const std::byte> from) {
    offset = at;
    return move(from.size());
  }
  void flush() { ++flushes; }
};

TEST(FileWorker, APassIsTheWholeFileInUnits) {
  const Job job{.writes = true, .synced = true, .unit = 16, .bytes = 48};
  NotedFile file;
  Worker worker(job, file, 0);
  worker.pass();
  worker.pass();
  EXPECT_THAT(file.calls, ElementsAre(std::pair(0, 16), std::pair(16, 16), std::pair(32, 16), std::pair(0, 16),
                                      std::pair(16, 16), std::pair(32, 16)));
  EXPECT_EQ(file.flushes, 2);
}

TEST(FileWorker, AtRandomEachUnitComesOnceAndInNoOrder) {
  const Job job{.random = true, .unit = 8, .bytes = 8000};
  NotedFile file;
  Worker(job, file, 0).pass();
  EXPECT_THAT(file.calls, SizeIs(1000));
  EXPECT_THAT((std::set(file.calls.begin(), file.calls.end())), SizeIs(1000));
  EXPECT_FALSE(std::is_sorted(file.calls.begin(), file.calls.end()));
  EXPECT_EQ(file.flushes, 0);
}

TEST(FileWorker, AWrongByteIsFoundByACheckAndWhereBytesAreUsed) {
  Job job{.unit = 16, .bytes = 48};
  NotedFile file;
  file.salt = 7;
  EXPECT_NO_THROW(Worker(job, file, 7).check());
  EXPECT_THROW(Worker(job, file, 8).check(), std::runtime_error);
  EXPECT_NO_THROW(Worker(job, file, 8).pass());
  job.used = true;
  EXPECT_NO_THROW(Worker(job, file, 7).pass());
  EXPECT_THROW(Worker(job, file, 8).pass(), std::runtime_error);
}

TEST(FileWorker, TheBufferBeginsAPageWhateverTheUnit) {
  for (const std::uint64_t unit : {8U, 512U, 65536U, 1U << 20}) {
    const Job job{.unit = unit, .bytes = 2 * unit};
    NotedFile file;
    Worker(job, file, 0).pass();
    EXPECT_EQ(file.within_page, 0U) << unit;
  }
}

TEST(FileWorker, ACallThatDoesLessIsNotCounted) {
  const Job job{.unit = 16, .bytes = 48};
  NotedFile file;
  file.missing = 1;
  EXPECT_THAT([&] { Worker(job, file, 0).pass(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("15 bytes instead of 16")));
}

class FileProgram : public ::testing::Test {
 protected:
  FileProgram() : files_(folder_.path()) {
    job_ = {.files = files_.folder() / "in", .unit = 4096, .bytes = 1 << 20, .processes = 3, .salt = 5};
    files_.prepare(job_);
  }

  Finding run() const {
    return run_job(job_, {},
                   [](const std::string& path, bool writes) { return std::make_unique<KernelFile>(path, writes); });
  }

  /// One byte of a process's file.
  void spoil(std::uint32_t process, off_t offset) const {
    const int file = ::open(path_of(job_, process).c_str(), O_RDWR | O_CLOEXEC);
    unsigned char byte = 0;
    EXPECT_EQ(::pread(file, &byte, 1, offset), 1);
    byte ^= 1U;
    EXPECT_EQ(::pwrite(file, &byte, 1, offset), 1);
    ::close(file);
  }

  test::TemporaryDirectory folder_;
  Files files_;
  Job job_;
};

TEST_F(FileProgram, EveryProcessReadsAllOfAFileOfItsOwn) {
  const Finding finding = run();
  EXPECT_EQ(finding.useful_bytes, 3U << 20);
  EXPECT_GT(finding.seconds, 0);
  job_.check = true;
  EXPECT_EQ(run().useful_bytes, 3U << 20);
  spoil(2, (1 << 20) - 1);
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_F(FileProgram, ThreadsOfOneProcessDoTheSame) {
  job_.threads = true;
  const Finding finding = run();
  EXPECT_EQ(finding.useful_bytes, 3U << 20);
  job_.check = true;
  EXPECT_EQ(run().useful_bytes, 3U << 20);
  spoil(2, 0);
  EXPECT_THAT([this] { run(); }, ThrowsMessage<std::runtime_error>(HasSubstr("the threads' process: exit status 1")));
}

TEST_F(FileProgram, TwoCopiesReadAndWriteWhatThereIs) {
  const auto run_copied = [this] {
    return run_job(job_, {}, [](const std::string& path, bool writes) {
      return std::make_unique<Positioned<TwoCopies>>(path, writes);
    });
  };
  // More than the ring, in units that are no multiple of its pieces.
  job_.bytes = job_.unit = 5 << 20;
  for (const std::uint64_t unit : {std::uint64_t{512}, std::uint64_t{5} << 18, std::uint64_t{5} << 20}) {
    job_.unit = unit;
    job_.check = true;
    job_.writes = false;
    files_.prepare(job_);
    EXPECT_EQ(run_copied().useful_bytes, 15U << 20);
    job_.writes = true;
    ++job_.salt;
    EXPECT_EQ(run_copied().useful_bytes, 15U << 20);
    EXPECT_NO_THROW(Files::compare(job_));
  }
  job_.writes = false;
  ASSERT_EQ(::truncate(path_of(job_, 1).c_str(), 100), 0);
  EXPECT_THROW(run_copied(), std::runtime_error) << "a short read is one";
}

TEST_F(FileProgram, LoadsAFileBeforePassesThatAreToFindItInMemory) {
  struct NotLoaded : KernelFile {
    using KernelFile::KernelFile;
    static void load(std::uint64_t bytes) { throw std::runtime_error(fmt::format("{} bytes", bytes)); }
  };
  const auto run_not_loaded = [this] {
    return run_job(job_, {},
                   [](const std::string& path, bool writes) { return std::make_unique<NotLoaded>(path, writes); });
  };
  EXPECT_NO_THROW(run_not_loaded());
  job_.warm_ups = 1;
  EXPECT_THROW(run_not_loaded(), std::runtime_error);
  EXPECT_EQ(run().useful_bytes, 3U << 20);
}

TEST_F(FileProgram, PassesFollowEachOtherUntilTheTimeIsOver) {
  job_.seconds = 0.05;
  job_.warm_ups = 2;
  const Finding finding = run();
  EXPECT_GE(finding.seconds, 0.05);
  EXPECT_EQ(finding.useful_bytes % job_.bytes, 0U);
  EXPECT_GT(finding.useful_bytes, 3U << 20);
}

TEST_F(FileProgram, WhatACheckWritesIsComparedFromOutside) {
  job_.writes = true;
  job_.check = true;
  job_.salt = 6;
  EXPECT_THROW(Files::compare(job_), std::runtime_error) << "it was not written yet";
  for (const bool random : {false, true}) {
    job_.random = random;
    ++job_.salt;
    run();
    EXPECT_NO_THROW(Files::compare(job_));
  }
  spoil(1, 77);
  EXPECT_THAT([this] { Files::compare(job_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("-1 has not what was written at 72")));
}

TEST_F(FileProgram, AProcessThatFailsEndsTheOthers) {
  job_.seconds = 1000;
  ASSERT_EQ(::truncate(path_of(job_, 1).c_str(), 4096), 0);
  EXPECT_THAT([this] { run(); }, ThrowsMessage<std::runtime_error>(HasSubstr("process 1: exit status 1")));
}

TEST_F(FileProgram, FoldersOfKilledProcessesAreRemovedAndThoseOfOthersAreNot) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const auto orphan = folder_.path() / ("wherry-bench-file-" + std::to_string(dead) + "-abcdef");
  std::filesystem::create_directories(orphan / "within");
  std::filesystem::create_directory(folder_.path() / "wherry-bench-files");
  const Files more(folder_.path());
  EXPECT_FALSE(std::filesystem::exists(orphan));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "wherry-bench-files"));
  EXPECT_TRUE(std::filesystem::exists(files_.folder())) << "its process lives";
}

TEST_F(FileProgram, FilesThatAreThereAreLeftAloneAndOthersMadeAnew) {
  spoil(0, 0);
  files_.prepare(job_);
  EXPECT_THROW(Files::compare(job_), std::runtime_error);
  ASSERT_EQ(::truncate(path_of(job_, 0).c_str(), 0), 0);
  files_.prepare(job_);
  EXPECT_NO_THROW(Files::compare(job_));
}

}  // namespace
}  // namespace wherry::bench::file
