// SPDX-License-Identifier: Apache-2.0
// wherry::files when something is missing, full, wrong, or dies.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <wherry/files.hpp>

#include "base/scoped_environment.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/no_descriptors.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

namespace fs = std::filesystem;
using files::Path;
using ::testing::HasSubstr;

const Pattern& pattern() {
  static const Pattern pattern(9);
  return pattern;
}

/// The error text of an open that must fail with `error`.
std::string refusal(const std::string& name, int flags, int error) {
  try {
    (void)files::open(name, flags, 0644, {.path = Path::automatic, .timeout = std::chrono::milliseconds(50)});
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code().value(), error) << refused.what();
    return refused.what();
  }
  ADD_FAILURE() << name << " can be opened";
  return "";
}

TEST(FilesFault, WhatCannotBeOpenedSaysWhatToDo) {
  const ServedDirectory served;
  const ServedDirectory fixed({.root = served.outside().string(), .read_only = true});
  in_client([&] {
    const std::string address = served.address();
    const std::string path = (served.root() / "file").string();
    EXPECT_THAT(refusal(path, O_RDONLY, ENOENT), HasSubstr("check the name; O_CREAT creates the file"));
    EXPECT_THAT(refusal(address + "/file", O_RDONLY, ENOENT), HasSubstr("O_CREAT creates the file"));
    EXPECT_THAT(refusal("wherry:/0:2000/file", O_RDONLY, ENOENT),
                HasSubstr("a file of a host is named wherry://NODE:PORT/PATH"));
    EXPECT_THAT(refusal(address, O_RDONLY, EINVAL),
                HasSubstr("the file's path follows the address: wherry://NODE:PORT/PATH"));
    EXPECT_THAT(refusal("wherry://*:2000/file", O_RDONLY, EINVAL),
                HasSubstr("name the node and the port that wherry serve listens on"));
    EXPECT_THAT(refusal("wherry://host/file", O_RDONLY, EINVAL), HasSubstr("wherry://"));
    EXPECT_THAT(refusal("wherry://0:64999/file", O_RDONLY, ECONNREFUSED),
                HasSubstr("no server listens there: wherry serve --root DIR --listen wherry://0:64999"));
    EXPECT_THAT(refusal(std::string("a\0b", 3), O_RDONLY, EINVAL),
                HasSubstr("remove the zero byte: no file name contains one"));
    EXPECT_THAT(refusal(address + "/../outside", O_RDONLY, EXDEV),
                HasSubstr("its name leads out of the served directory"));
    EXPECT_THAT(refusal(fixed.address() + "/file", O_RDWR | O_CREAT, EROFS),
                HasSubstr("its server serves it read-only"));
    EXPECT_THAT(refusal(path, O_RDWR | O_DIRECT, EINVAL),
                HasSubstr("omit flags that Wherry does not support, such as O_DIRECT"));
    EXPECT_THAT(refusal(path, O_RDONLY | O_TRUNC, EINVAL), HasSubstr("O_TRUNC needs O_WRONLY or O_RDWR"));
    EXPECT_THAT(refusal(address + "/", O_RDWR, EISDIR), HasSubstr("Is a directory"));
    EXPECT_THAT(refusal(address + "/" + std::string(5000, 'x'), O_RDONLY, ENAMETOOLONG),
                HasSubstr("File name too long"));
    const ScopedEnvironment wrong("WHERRY_FILE_PATH", "fast");
    try {
      (void)files::open(path, O_RDWR | O_CREAT, 0644);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("kernel, cache, card, host or auto"));
    }
  });
  in_client([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return;
    EXPECT_THAT(refusal("/proc/1/mem", O_RDWR, EACCES), HasSubstr("this user may not: check the permissions"));
  });
  in_client([&] {
    if (!NoDescriptors::kPossible) return;
    const NoDescriptors none;
    EXPECT_THAT(refusal("/etc/hostname", O_RDONLY, EMFILE), HasSubstr("close files, or raise the limit of open files"));
  });
}

class FilesOfAServer : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, FilesOfAServer, testing::Bool(),
                         [](const auto& with) { return with.param ? "ThatLends" : "ThatMovesTheData"; });

TEST_P(FilesOfAServer, WhatOneThatIsKilledAgainAndAgainAcknowledgedIsThere) {
  const ServedDirectory served({.lends = GetParam()});
  constexpr std::size_t kRecord = 20'000;
  constexpr int kDeaths = 4;
  const std::size_t kRecords = soaking() ? 2000 : 150;
  const SharedValue<std::atomic<std::size_t>> synced;
  const SharedValue<std::atomic<int>> opened;  // an open does not wait for a server
  std::vector<Child> clients;
  clients.push_back(client([&] {
    files::File file = files::open(served.address() + "/file", O_RDWR | O_CREAT, 0644);
    ++*opened;
    std::vector<std::byte> back(kRecord);
    for (std::size_t i = 0; i < kRecords; ++i) {
      // With a lent descriptor all records would be written before the server dies.
      while (*opened < 3 || served.deaths() < std::min<int>(kDeaths, static_cast<int>(i) / 30))
        std::this_thread::yield();
      const std::uint64_t at = i * kRecord;
      EXPECT_EQ(file.pwrite(pattern().bytes(kRecord, at), at).bytes, kRecord);
      EXPECT_TRUE(file.sync());
      *synced = i + 1;
      EXPECT_EQ(file.pread(back, at).bytes, kRecord);
      EXPECT_TRUE(pattern().matches(back, at));
    }
  }));
  for (const Path path : {Path::host, Path::automatic}) {
    clients.push_back(client([&, path] {
      files::File file = files::open(served.address() + "/file", O_RDWR | O_CREAT, 0644, {.path = path});
      ++*opened;
      std::mt19937_64 random(3);
      std::vector<std::byte> got(2 * kRecord);
      while (*synced < kRecords) {
        const std::size_t there = *synced * kRecord;
        if (there < got.size()) continue;
        const std::size_t at = random() % (there - got.size() + 1);
        const Result result = file.pread(got, at);
        EXPECT_EQ(result.bytes, got.size()) << result;
        EXPECT_TRUE(pattern().matches(got, at));
      }
    }));
  }
  std::thread killer([&] {
    std::size_t seen = 0;
    while (*synced < kRecords) {
      while (*synced < kRecords && *synced < seen + 10) std::this_thread::yield();
      seen = *synced;
      // The next server may not have started yet.
      for (const int before = served.deaths(); served.deaths() == before && *synced < kRecords;) {
        served.kill();
        std::this_thread::yield();
      }
    }
  });
  for (Child& child : clients) EXPECT_EQ(child.wait(), 0);
  killer.join();
  EXPECT_GE(served.deaths(), kDeaths);
  EXPECT_TRUE(pattern().matches(as_data(content_of(served.root() / "file")), 0));
}

/// Runs `body` in a separate mount namespace, with a tmpfs of `size` bytes on `place`. Does nothing if that is
/// forbidden.
template <class Body>
void with_tmpfs(const std::string& place, const char* size, Body body) {
  Child child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return true;
    if (::mount("none", place.c_str(), "tmpfs", 0, size) != 0) return true;
    body();
    std::fflush(nullptr);
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(FilesFault, NoRoomIsAnErrorOfTheWriteThatFoundNone) {
  const test::TemporaryDirectory directory;
  with_tmpfs(directory.path(), "size=1m", [&] {
    const ServedDirectory served({.root = directory.path().string()});
    for (const std::string& where : {directory.path().string(), served.address()}) {
      in_client([&] {
        files::File file = files::open(where + "/file", O_RDWR | O_CREAT | O_TRUNC, 0644);
        files::File log = files::open(where + "/log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        const auto data = pattern().bytes(3 << 20);
        const Result wrote = file.pwrite(data, 0);
        EXPECT_EQ(wrote.error, ENOSPC);
        EXPECT_GT(wrote.bytes, 0U);
        EXPECT_LT(wrote.bytes, data.size());
        EXPECT_EQ(log.append(data).error, ENOSPC);
        std::vector<std::byte> got(data.size());
        EXPECT_EQ(file.pread(got, 0).bytes, wrote.bytes);
        EXPECT_TRUE(pattern().matches(std::span(got).first(wrote.bytes), 0));
        EXPECT_TRUE(file.set_size(0));
        EXPECT_EQ(log.append(std::span(data).first(1000)).bytes, 1000U);
        files::remove(where + "/log");
      });
    }
  });
}

TEST(FilesFault, AThreadThatBlocksAllSignalsOutlivesTheEndOfThePageOfTruncations) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  write_file(path, pattern().bytes(100'000));
  with_tmpfs("/dev/shm", "size=4m", [&] {
    in_client([&] {
      files::File file = files::open(path, O_RDONLY, 0, {.path = Path::cache});
      std::vector<std::byte> got(4096);
      const auto read = [&] {
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(file.pread(got, 4096).bytes, got.size());
      };
      read();
      std::thread([&] {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        ::usleep(30'000);  // the known mask and size have expired
        for (const auto& entry : fs::directory_iterator("/dev/shm")) fs::resize_file(entry, 0);
        read();
      }).join();
    });
  });
}

TEST(FilesFault, AClientKilledInTheMiddleOfItsWritesLeavesAFileThatOthersReadRight) {
  const ServedDirectory served;
  const std::string path = served.root() / "file";
  write_file(path, pattern().bytes(200'000));
  for (const std::string& name : {path, served.address() + "/file"}) {
    Child writer([&] {
      files::File file = files::open(name, O_RDWR);
      for (std::uint64_t i = 0;; ++i) (void)file.pwrite(pattern().bytes(70'000, i % 100), 0);
      return true;
    });
    in_client([&] {
      files::File file = files::open(path, O_RDONLY, 0, {.path = Path::cache});
      std::vector<std::byte> got(200'000);
      for (int i = 0; i < 200; ++i) EXPECT_EQ(file.pread(got, 0).bytes, got.size());
      writer.kill();
      writer.wait();
      // The server may still do the last write, which then appears as a change by others.
      std::string content;
      do {
        EXPECT_EQ(file.pread(got, 0).bytes, got.size());
        content = content_of(path);
      } while (content != std::string(reinterpret_cast<const char*>(got.data()), got.size()));
    });
  }
}

}  // namespace
}  // namespace wherry::file
