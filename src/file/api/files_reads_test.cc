// SPDX-License-Identifier: Apache-2.0
// The paths of reads of wherry::files, what they fill, and where they end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <wherry/files.hpp>

#include "base/scoped_environment.hpp"
#include "file/api/host_source.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using files::Path;

class FilesReads : public ServedFiles {};

TEST_F(FilesReads, AWordInTheEnvironmentIsForFilesOfThisMachineAndOfHosts) {
  make("file", 1000);
  struct Word {
    const char* word;
    Path here;
    Path there;
  };
  for (const auto& [word, here, there] :
       {Word{nullptr, Path::automatic, Path::automatic}, Word{"auto", Path::automatic, Path::automatic},
        Word{"kernel", Path::kernel, Path::host}, Word{"local", Path::kernel, Path::host},
        Word{"cache", Path::cache, Path::host}, Word{"comp", Path::cache, Path::host},
        Word{"card", Path::kernel, Path::host}, Word{"os", Path::kernel, Path::host},
        Word{"host", Path::kernel, Path::host}}) {
    in_client([&] {
      const ScopedEnvironment said("WHERRY_FILE_PATH", word);
      std::array<std::byte, 1000> got;
      EXPECT_EQ(files::open(path("file"), O_RDONLY).path(), here);
      EXPECT_EQ(files::open(path("file"), O_RDONLY).pread(got, 0).bytes, got.size());
      EXPECT_EQ(files::open(url("file"), O_RDONLY).path(), there);
      EXPECT_EQ(files::open(url("file"), O_RDONLY).pread(got, 0).bytes, got.size());
    });
  }
}

TEST_F(FilesReads, APathThatAFileDoesNotHaveIsRefused) {
  make("file", 1000);
  in_client([&] {
    for (const auto& [name, paths] : {std::pair(path("file"), std::vector{Path::card, Path::host}),
                                      std::pair(url("file"), std::vector{Path::kernel, Path::cache, Path::card})}) {
      files::File file = files::open(name, O_RDWR);
      for (const Path path : paths) {
        std::array<std::byte, 10> bytes{};
        EXPECT_EQ(file.pread(bytes, 0, path).error, EOPNOTSUPP);
        EXPECT_EQ(file.pwrite(bytes, 0, path).error, EOPNOTSUPP);
        try {
          (void)files::open(name, O_RDONLY, 0, {.path = path});
          ADD_FAILURE() << name;
        } catch (const Error& error) {
          EXPECT_EQ(error.code().value(), EOPNOTSUPP);
          EXPECT_NE(std::string(error.what()).find("has the paths"), std::string::npos) << error.what();
        }
      }
    }
  });
}

TEST_F(FilesReads, ALoopThatReadsEndsAtTheEnd) {
  make("file", 10'000);
  for (const std::string& name : {path("file"), url("file")}) {
    in_client([&] {
      files::File file = files::open(name, O_RDONLY);
      for (const Path way : {Path::automatic, name == path("file") ? Path::cache : Path::host}) {
        std::array<std::byte, 3000> piece;
        const iovec halves[] = {{piece.data(), 1000}, {piece.data() + 1000, 2000}};
        std::uint64_t at = 0;
        while (const Result got = file.pread(piece, at, way)) at += got.bytes;
        EXPECT_EQ(at, 10'000U);
        EXPECT_TRUE(file.preadv(halves, at, way).ended());
        EXPECT_TRUE(file.preadv({}, at, way).ok()) << "nothing was asked for";
        EXPECT_TRUE(file.pread({}, at, way).ok());
      }
    });
  }
}

TEST_F(FilesReads, OfAFileThatGrewAreWhole) {
  make("file", 20'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
    std::vector<std::byte> got(100'000);
    EXPECT_EQ(file.pread(got, 0).bytes, 20'000U);
    in_client([&] {
      files::File writer = files::open(path("file"), O_WRONLY);
      EXPECT_EQ(writer.pwrite(pattern_.bytes(80'000, 20'000), 20'000).bytes, 80'000U);
    });
    EXPECT_EQ(file.pread(got, 0).bytes, got.size());
    EXPECT_TRUE(pattern_.matches(got, 0));
  });
}

TEST_F(FilesReads, ThreadsShareAFile) {
  constexpr std::size_t kPart = 256 * 1024;
  for (const std::string& name : {path("file"), url("file")}) {
    make("file", 4 * kPart);
    in_client([&] {
      files::File file = files::open(name, O_RDWR);
      const Pattern& pattern = pattern_;
      std::vector<std::thread> threads;
      for (std::size_t own = 0; own < 4; ++own) {
        threads.emplace_back([&, own] {
          std::mt19937_64 random(own);
          std::vector<std::byte> buffer(40'000);
          const std::size_t begin = own * kPart;
          std::vector<std::byte> model = pattern.bytes(kPart, begin);
          for (std::uint64_t i = 0; i < 200; ++i) {
            const std::size_t offset = random() % 200'000;
            const auto part = std::span(buffer).first(random() % 40'000 + 1);
            const auto there = std::span(model).subspan(offset, part.size());
            EXPECT_EQ(file.pread(part, begin + offset,
                                 random() % 2 == 0 || name != path("file") ? Path::automatic : Path::cache)
                          .bytes,
                      part.size());
            EXPECT_TRUE(std::ranges::equal(part, there));
            if (i % 8 != 0) continue;
            std::ranges::copy(pattern.bytes(part.size(), i * 1000 + own), there.begin());
            EXPECT_EQ(file.pwrite(there, begin + offset).bytes, part.size());
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }
}

TEST_F(FilesReads, FilesOfAHostShareAConnectionUntilCallsOnItMeet) {
  make("file", 100'000);
  in_client([&] {
    constexpr std::chrono::milliseconds kTimeout{1000};
    const auto shared = HostFiles::get(served_.address(), kTimeout);
    const auto open = [&] {
      int error = 0;
      layout::FileStatus status{};
      return std::make_unique<HostSource>(shared, "file", layout::kFileOpenRead, 0, error, status);
    };
    const auto one = open();
    const auto other = open();
    EXPECT_EQ(HostFiles::get(served_.address(), kTimeout), shared) << "no call waited for another";
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < 2) return;
    std::atomic<bool> over{false};
    const auto call = [&](HostSource& file) {
      for (layout::FileStatus status{}; !over;) EXPECT_EQ(file.status(status), 0);
    };
    std::thread first([&] { call(*one); });
    std::thread second([&] { call(*other); });
    std::shared_ptr<HostFiles> further = shared;
    while (further == shared) further = HostFiles::get(served_.address(), kTimeout);
    over = true;
    first.join();
    second.join();
  });
}

TEST_F(FilesReads, ADeviceIsOpenedToBeTruncatedAsTheKernelDoes) {
  in_client([&] {
    files::File nothing = files::open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT_EQ(nothing.pwrite(pattern_.bytes(100), 0).bytes, 100U);
  });
}

std::string refusal(const std::function<void()>& call, int error) {
  try {
    call();
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code().value(), error) << refused.what();
    return refused.what();
  }
  ADD_FAILURE();
  return "";
}

TEST_F(FilesReads, WhatIsRefusedSaysWhichCallItWasAndWhatToDo) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::Not;
  using ::testing::StartsWith;
  make("file", 10);
  std::filesystem::create_symlink("file", path("link"));
  in_client([&] {
    for (const std::string& base : {path(""), url("")}) {
      const auto opens = [&](const std::string& name, int flags) {
        return [name = base + name, flags] { (void)files::open(name, flags, 0600); };
      };
      EXPECT_THAT(refusal([&] { (void)files::stat(base + "none"); }, ENOENT),
                  AllOf(StartsWith("stat "), HasSubstr("check the name"), Not(HasSubstr("O_CREAT"))));
      EXPECT_THAT(refusal([&] { files::remove(base + "none"); }, ENOENT),
                  AllOf(StartsWith("remove "), Not(HasSubstr("O_CREAT"))));
      EXPECT_THAT(refusal(opens("", O_RDWR), EISDIR), HasSubstr("it is a directory"));
      EXPECT_THAT(refusal(opens("file/more", O_RDONLY), ENOTDIR), HasSubstr("is not a directory"));
      EXPECT_THAT(refusal(opens("file", O_RDWR | O_CREAT | O_EXCL), EEXIST), HasSubstr("omit O_EXCL"));
      EXPECT_THAT(refusal(opens("link", O_RDONLY | O_NOFOLLOW), ELOOP), HasSubstr("O_NOFOLLOW"));
      EXPECT_THAT(refusal(opens("file", O_ACCMODE), EINVAL), HasSubstr("use O_RDONLY, O_WRONLY or O_RDWR"));
    }
    EXPECT_THAT(refusal([] { (void)files::stat("wherry://host"); }, EINVAL), StartsWith("stat "));
  });
}

}  // namespace
}  // namespace wherry::file
