// SPDX-License-Identifier: Apache-2.0
// What a program sees of wherry::files: the same as of the files themselves, on each path.
#include <wherry/files.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "file/card.hpp"
#include "file/card_server.hpp"
#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

using files::Path;
using files::Reason;

constexpr Path kLocalPaths[] = {Path::automatic, Path::local, Path::comp, Path::os};
constexpr Path kHostPaths[] = {Path::automatic, Path::host, Path::comp, Path::os};

class Files : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return (served_.root() / name).string(); }
  [[nodiscard]] std::string url(const std::string& name) const { return served_.address() + "/" + name; }
  void make(const std::string& name, std::size_t bytes) const {
    write_file(path(name), pattern_.bytes(bytes));
    in_client([&] { settle_for_writers(path(name)); });
  }

  const Pattern pattern_{5};
  const TestCard card_;
  const ServedDirectory served_;
};

/// Random calls on one file, beside a model in memory.
void play(const std::string& name, const std::string& place, std::span<const Path> paths, int operations) {
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const Pattern pattern(seed);
  files::File file = files::open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  std::vector<std::byte> model;
  std::vector<std::byte> buffer;
  std::size_t following = 0;
  for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
    if (i % 500 == 0) {  // nothing is cached of a file that was changed just before it is looked at
      file = {};
      settle_for_writers(place);
      file = files::open(name, O_RDWR);
    }
    const Path path = paths[random() % paths.size()];
    const std::size_t offset = random() % 3 == 0 ? random() % 600'000 : following;
    const std::size_t bytes = random() % (random() % 8 == 0 ? 300'000 : 6000);
    switch (random() % 16) {
      case 0: {
        const auto data = pattern.bytes(bytes, random() % 1000);
        ASSERT_EQ(file.pwrite(data, offset, path).bytes, bytes);
        if (bytes != 0) model.resize(std::max(model.size(), offset + bytes));
        std::ranges::copy(data, model.begin() + static_cast<std::ptrdiff_t>(offset));
        break;
      }
      case 1:
        if (random() % 8 != 0) break;
        ASSERT_TRUE(file.set_size(offset));
        model.resize(offset);
        break;
      default: {
        buffer.resize(bytes);
        const std::size_t there = offset < model.size() ? std::min(bytes, model.size() - offset) : 0;
        const std::size_t half = bytes / 2;
        const iovec halves[] = {{buffer.data(), half}, {buffer.data() + half, bytes - half}};
        const Result got = random() % 4 == 0 ? file.preadv(halves, offset, path) : file.pread(buffer, offset, path);
        ASSERT_EQ(got.ended(), bytes != 0 && there == 0) << got;
        ASSERT_FALSE(got.failed()) << got;
        ASSERT_EQ(got.bytes, there) << "operation " << i;
        ASSERT_TRUE(std::ranges::equal(std::span(buffer).first(there),
                                       std::span(model).subspan(std::min(offset, model.size()), there)))
            << "operation " << i << " path " << static_cast<int>(path) << " offset " << offset << " bytes " << bytes;
        following = there < bytes ? 0 : offset + bytes;
      }
    }
  }
  files::Status status;
  ASSERT_TRUE(file.stat(status));
  EXPECT_EQ(status.size, model.size());
  const bool caches = paths.size() != 1 || (paths[0] != Path::local && paths[0] != Path::host);
  EXPECT_EQ(process_cache(false).counts().hits > 0, caches);
}

TEST_F(Files, RandomCallsOnPathsThatChangeReadWhatAModelHas) {
  const int operations = soaking() ? 200'000 : 4000;
  for (const Path path : kLocalPaths)
    in_client([&] { play(this->path("file"), this->path("file"), std::array{path}, operations / 4); });
  in_client([&] { play(path("file"), path("file"), kLocalPaths, operations); });
}

/// The card's process, killed and started again as long as it lives, or left alone.
bool be_card(const std::string& path, std::atomic<int>& started, bool dies) {
  while (true) {
    Child card([&] {
      Card own({.path = path, .marks_stay = std::chrono::milliseconds(10)});
      const CardServer server(path);
      ++started;
      const UniqueFd never(::eventfd(0, EFD_CLOEXEC));
      own.run(never.get());
      return true;
    });
    if (dies) ::usleep(20'000);
    if (dies) card.kill();
    card.wait();
  }
}

TEST_F(Files, RandomCallsReadWhatAModelHasWhileTheCardsProcessServesAndWhileItIsKilled) {
  const int operations = soaking() ? 100'000 : 4000;
  for (const bool dies : {false, true}) {
    SharedValue<std::atomic<int>> started;
    Child supervisor([&] { return be_card(card_.path(), *started, dies); });
    while (*started == 0) ::usleep(1000);
    in_client([&] {
      play(path("file"), path("file"), kLocalPaths, operations);
      EXPECT_TRUE(dies || files::choices().of(Path::os, Reason::asked) != 0);
      while (dies && *started < 2) ::usleep(1000);
    });
  }
}

TEST_F(Files, RandomCallsOnAFileOfAHostReadWhatAModelHas) {
  const int operations = soaking() ? 200'000 : 4000;
  for (const Path path : kHostPaths)
    in_client([&] { play(url("file"), this->path("file"), std::array{path}, operations / 4); });
  in_client([&] { play(url("file"), this->path("file"), kHostPaths, operations); });
}

TEST_F(Files, WhatOneProcessFilledAnotherReadsWithoutAskingThoughItNamesTheFileOtherwise) {
  make("file", 300'000);
  in_client([&] {
    files::File file = files::open(url("file"), O_RDONLY, 0, {.path = Path::comp});
    std::vector<std::byte> got(250'000);
    EXPECT_EQ(file.pread(got, 0).bytes, got.size());
    EXPECT_TRUE(pattern_.matches(got, 0));
    EXPECT_GT(process_cache(false).counts().fills, 14U);
  });
  for (const std::string& name : {path("file"), url("file")}) {
    in_client([&] {
      files::File file = files::open(name, O_RDONLY, 0, {.path = Path::comp});
      std::vector<std::byte> got(200'000);
      EXPECT_EQ(file.pread(got, 30'000).bytes, got.size());
      EXPECT_TRUE(pattern_.matches(got, 30'000));
      EXPECT_EQ(process_cache(false).counts().hits, 1U) << name;
      EXPECT_EQ(process_cache(false).counts().fills, 0U) << name;
    });
  }
}

TEST_F(Files, AReaderInOrderOfSmallPiecesAsksTheHostForWindowsOnly) {
  make("file", 2 << 20);
  in_client([&] {
    files::File file = files::open(url("file"), O_RDONLY, 0, {.path = Path::comp});
    std::array<std::byte, 512> piece;
    for (std::size_t at = 0; at < 2U << 20; at += piece.size()) {
      EXPECT_EQ(file.pread(piece, at).bytes, piece.size());
      EXPECT_TRUE(pattern_.matches(piece, at));
    }
    // 64 KiB, 128, then 256 each.
    EXPECT_LE(files::choices().of(Path::comp, Reason::asked), 11U);
    EXPECT_EQ(process_cache(false).counts().hits, (2U << 20) / 512 - files::choices().of(Path::comp, Reason::asked));
  });
}

TEST_F(Files, ProcessesOnUnlikePathsAndNamesReadWhatTheLastOfThemWrote) {
  make("file", 100'000);
  constexpr std::size_t kSide = 3;
  constexpr int kTurns = 300;
  const SharedValue<std::atomic<int>> turn;
  const SharedValue<std::atomic<std::size_t>> opened;
  const SharedValue<std::atomic<std::uint64_t>> hits;
  in_client([&] { settle_for_writers(path("file")); });
  std::vector<Child> children;
  for (std::size_t side = 0; side < kSide; ++side) {
    children.push_back(client([&, side] {
      std::mt19937_64 random(side);
      files::File file = files::open(side == 1 ? url("file") : path("file"), O_RDWR);
      std::vector<std::byte> got(50'000);
      // A file that was changed just before it is opened is not cached for a while.
      ++*opened;
      while (*opened < kSide) std::this_thread::yield();
      for (int now = static_cast<int>(side); now < kTurns; now += kSide) {
        while (*turn < now) std::this_thread::yield();
        const auto& paths = side == 1 ? kHostPaths : kLocalPaths;
        for (int i = 0; i < 2; ++i) {
          EXPECT_EQ(file.pread(got, 1000, paths[random() % 4]).bytes, got.size());
          EXPECT_TRUE(now == 0 || pattern_.matches(got, static_cast<std::uint64_t>(now) * 7)) << now;
        }
        const auto next = pattern_.bytes(got.size(), static_cast<std::uint64_t>(now + 1) * 7);
        EXPECT_EQ(file.pwrite(next, 1000, paths[random() % 4]).bytes, next.size());
        *turn = now + 1;
      }
      *hits += process_cache(false).counts().hits;
    }));
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  EXPECT_GT(*hits, 0U) << "or the cache was not looked at";
}

TEST_F(Files, WhatOthersChangedIsSeenWhenTheFileIsOpenedAndSoonBySuchAsHaveItOpen) {
  for (const std::string& name : {path("file"), url("file")}) {
    make("file", 100'000);
    in_client([&] {
      files::File before = files::open(name, O_RDONLY, 0, {.path = Path::comp});
      std::vector<std::byte> got(50'000);
      EXPECT_EQ(before.pread(got, 0).bytes, got.size());
      write_file(path("file"), pattern_.bytes(100'000, 11));
      files::File after = files::open(name, O_RDONLY, 0, {.path = Path::comp});
      EXPECT_EQ(after.pread(got, 0).bytes, got.size());
      EXPECT_TRUE(pattern_.matches(got, 11));
      write_file(path("file"), pattern_.bytes(100'000, 13));
      do EXPECT_EQ(before.pread(got, 0).bytes, got.size());
      while (!pattern_.matches(got, 13));
    });
  }
}

TEST_F(Files, AViewIsTheFilesUntilTheFileIsChanged) {
  make("file", 100'000);
  for (const std::string& name : {path("file"), url("file")}) {
    in_client([&] {
      files::File file = files::open(name, O_RDWR);
      const files::View view = file.view(20'000, 100'000);
      ASSERT_TRUE(view);
      EXPECT_EQ(view.bytes().size(), 2 * layout::kFileBlock - 20'000);
      EXPECT_TRUE(pattern_.matches(view.bytes(), 20'000));
      EXPECT_TRUE(view.unchanged());
      EXPECT_EQ(file.pwrite(pattern_.bytes(1, 20'000), 5).bytes, 1U) << "another block";
      EXPECT_TRUE(view.unchanged());
      EXPECT_EQ(file.pwrite(view.bytes().first(1), 20'000).bytes, 1U);
      EXPECT_FALSE(view.unchanged());
      const files::View last = file.view(99'999, 10);
      EXPECT_EQ(last.bytes().size(), 1U);
      EXPECT_TRUE(last.unchanged());
      EXPECT_TRUE(file.set_size(50));
      EXPECT_FALSE(last.unchanged()) << "all blocks at once";
      EXPECT_FALSE(file.view(50, 1)) << "the end of the file";
      EXPECT_FALSE(files::View().unchanged());
    });
    make("file", 100'000);
  }
}

TEST_F(Files, AppendsOfProcessesDoNotMixAndAreSeen) {
  std::vector<Child> children;
  for (const std::string& name : {path("log"), url("log")}) {
    children.push_back(client([&, name] {
      files::File file = files::open(name, O_RDWR | O_APPEND | O_CREAT, 0644);
      for (int i = 0; i < 100; ++i) {
        const auto record = pattern_.bytes(997);
        EXPECT_EQ(file.append(record).bytes, record.size());
      }
      EXPECT_EQ(file.pwrite(pattern_.bytes(1), 0).error, EINVAL);
      std::array<std::byte, 997> first;
      EXPECT_EQ(file.pread(first, 0).bytes, first.size());
      EXPECT_TRUE(pattern_.matches(first, 0));
    }));
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  const std::string content = content_of(path("log"));
  ASSERT_EQ(content.size(), 200U * 997);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_TRUE(pattern_.matches(as_data(content).subspan(i * 997, 997), 0));
}

TEST_F(Files, AFileIsWhatItsStatusSays) {
  make("file", 12'345);
  in_client([&] {
    files::Status here;
    files::Status there;
    files::File file = files::open(path("file"), O_RDONLY);
    EXPECT_TRUE(file.stat(here));
    EXPECT_EQ(here.size, 12'345U);
    files::File remote = files::open(url("file"), O_RDONLY);
    EXPECT_TRUE(remote.stat(there));
    EXPECT_EQ(std::tie(here.device, here.inode, here.size, here.mode, here.modified, here.changed, here.links),
              std::tie(there.device, there.inode, there.size, there.mode, there.modified, there.changed, there.links));
    EXPECT_EQ(files::stat(path("file")).inode, here.inode);
    EXPECT_EQ(files::stat(url("file")).device, here.device);
    EXPECT_GT(here.modified, 1'500'000'000'000'000'000);
    files::remove(url("file"));
    EXPECT_THROW((void)files::stat(path("file")), Error);
    EXPECT_THROW(files::remove(path("file")), Error);
  });
}

TEST_F(Files, TruncatingAtOpenIsAChange) {
  for (const std::string& name : {path("file"), url("file")}) {
    make("file", 100'000);
    in_client([&] {
      files::File reader = files::open(path("file"), O_RDONLY, 0, {.path = Path::comp});
      std::vector<std::byte> got(50'000);
      EXPECT_EQ(reader.pread(got, 0).bytes, got.size());
      files::File writer = files::open(name, O_WRONLY | O_TRUNC);
      EXPECT_EQ(reader.pread(got, 0).to_string(), "end");
      EXPECT_EQ(writer.pread(got, 0).error, EBADF);
      EXPECT_EQ(reader.pwrite(got, 0).error, EBADF);
    });
  }
}

TEST_F(Files, AnotherKernelsCallsAndNoFileAreErrors) {
  make("file", 10);
  in_client([&] {
    std::array<std::byte, 4> byte{};
    files::File local = files::open(path("file"), O_RDWR);
    EXPECT_EQ(local.pread(byte, 0, Path::host).error, EOPNOTSUPP);
    EXPECT_EQ(local.pwrite(byte, 0, Path::host).error, EOPNOTSUPP);
    EXPECT_EQ(local.pread(byte, UINT64_MAX).error, EINVAL);
    files::File remote = files::open(url("file"), O_RDWR);
    EXPECT_EQ(remote.pread(byte, 0, Path::local).error, EOPNOTSUPP);
    EXPECT_EQ(remote.pread(byte, 8).to_string(), "2 bytes");
    files::File closed;
    EXPECT_EQ(closed.pread(byte, 0).error, EBADF);
    EXPECT_EQ(closed.sync().error, EBADF);
    EXPECT_FALSE(closed.view(0, 1));
    EXPECT_TRUE(remote.close());
    EXPECT_EQ(remote.close().error, EBADF);
  });
}

TEST_F(Files, AFileOfAHostStaysItsParentsAndOneOfThisMachineIsTheChildsToo) {
  make("file", 100'000);
  in_client([&] {
    files::File local = files::open(path("file"), O_RDWR, 0, {.path = Path::comp});
    files::File remote = files::open(url("file"), O_RDWR, 0, {.path = Path::comp});
    std::vector<std::byte> got(50'000);
    EXPECT_EQ(remote.pread(got, 0).bytes, got.size());
    in_client([&] {
      EXPECT_EQ(remote.pread(got, 0).error, EBADF);
      EXPECT_EQ(remote.pwrite(got, 0).error, EBADF);
      EXPECT_EQ(remote.sync().error, EBADF);
      EXPECT_EQ(local.pread(got, 0).bytes, got.size());
      EXPECT_TRUE(pattern_.matches(got, 0));
      EXPECT_EQ(local.pwrite(pattern_.bytes(got.size(), 3), 0).bytes, got.size());
      files::File again = files::open(url("file"), O_RDONLY);
      EXPECT_EQ(again.pread(got, 0).bytes, got.size());
      EXPECT_TRUE(pattern_.matches(got, 3));
      remote = {};
    });
    in_client([&] { EXPECT_EQ(remote.close().error, EBADF); });
    EXPECT_EQ(remote.pread(got, 0).bytes, got.size());
    EXPECT_TRUE(pattern_.matches(got, 3));
    EXPECT_EQ(remote.pwrite(got, 0).bytes, got.size());
    EXPECT_TRUE(remote.close());
  });
}

}  // namespace
}  // namespace wherry::file
