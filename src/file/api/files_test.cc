// SPDX-License-Identifier: Apache-2.0
// A program sees the same through wherry::files as of the files themselves, on each path.
#include <wherry/files.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/files_api.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

using files::Path;

constexpr Path kLocalPaths[] = {Path::automatic, Path::kernel, Path::cache};
constexpr Path kHostPaths[] = {Path::automatic, Path::host};

class Files : public ServedFiles {};

/// Random calls on one file, compared with a model in memory.
void play(const std::string& name, std::span<const Path> paths, int operations) {
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
    if (i % 500 == 499) file = files::open(name, O_RDWR);
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
}

TEST_F(Files, RandomCallsOnPathsThatChangeReadWhatAModelHas) {
  const int operations = soaking() ? 200'000 : 4000;
  for (const Path path : kLocalPaths) in_client([&] { play(this->path("file"), std::array{path}, operations / 4); });
  in_client([&] { play(path("file"), kLocalPaths, operations); });
}

TEST_F(Files, RandomCallsOnAFileOfAHostReadWhatAModelHas) {
  const int operations = soaking() ? 200'000 : 4000;
  for (const Path path : kHostPaths) in_client([&] { play(url("file"), std::array{path}, operations / 4); });
  in_client([&] { play(url("file"), kHostPaths, operations); });
}

TEST_F(Files, ProcessesOnUnlikePathsAndNamesReadWhatTheLastOfThemWrote) {
  make("file", 100'000);
  constexpr std::size_t kSide = 3;
  constexpr int kTurns = 300;
  const SharedValue<std::atomic<int>> turn;
  const SharedValue<std::atomic<std::size_t>> opened;
  std::vector<Child> children;
  for (std::size_t side = 0; side < kSide; ++side) {
    children.push_back(client([&, side] {
      std::mt19937_64 random(side);
      files::File file = files::open(side == 1 ? url("file") : path("file"), O_RDWR);
      std::vector<std::byte> got(50'000);
      ++*opened;
      while (*opened < kSide) std::this_thread::yield();
      for (int now = static_cast<int>(side); now < kTurns; now += kSide) {
        while (*turn < now) std::this_thread::yield();
        const auto paths = side == 1 ? std::span<const Path>(kHostPaths) : std::span<const Path>(kLocalPaths);
        for (int i = 0; i < 2; ++i) {
          EXPECT_EQ(file.pread(got, 1000, paths[random() % paths.size()]).bytes, got.size());
          EXPECT_TRUE(now == 0 || pattern_.matches(got, static_cast<std::uint64_t>(now) * 7)) << now;
        }
        const auto next = pattern_.bytes(got.size(), static_cast<std::uint64_t>(now + 1) * 7);
        EXPECT_EQ(file.pwrite(next, 1000, paths[random() % paths.size()]).bytes, next.size());
        *turn = now + 1;
      }
    }));
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST_F(Files, AViewShowsTheFileUntilItIsClosed) {
  make("file", 100'000);
  in_client([&] {
    files::File file = files::open(path("file"), O_RDWR);
    const auto view = file.view(20'000, 200'000);
    ASSERT_EQ(view.size(), 80'000U);
    EXPECT_TRUE(pattern_.matches(view, 20'000));
    EXPECT_EQ(file.pwrite(pattern_.bytes(10, 7), 20'000).bytes, 10U);
    EXPECT_TRUE(pattern_.matches(view.first(10), 7)) << "a change is seen";
    EXPECT_EQ(file.view(99'999, 10).size(), 1U);
    EXPECT_TRUE(file.view(100'000, 1).empty()) << "the end of the file";
    EXPECT_TRUE(file.view(0, 0).empty());
    // Longer than the first view.
    EXPECT_EQ(file.pwrite(pattern_.bytes(10, 9), 40 << 20).bytes, 10U);
    EXPECT_TRUE(pattern_.matches(file.view(40 << 20, 10), 9));
    EXPECT_TRUE(pattern_.matches(view.subspan(10), 20'010)) << "the first one stays";
    in_client([&] { EXPECT_TRUE(pattern_.matches(view.subspan(10), 20'010)); });
    EXPECT_TRUE(files::open(url("file"), O_RDONLY).view(0, 10).empty());
    EXPECT_TRUE(files::open(path("file"), O_WRONLY).view(0, 10).empty());
  });
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
      files::File reader = files::open(path("file"), O_RDONLY, 0, {.path = Path::cache});
      std::vector<std::byte> got(50'000);
      for (int i = 0; i < 50; ++i) EXPECT_EQ(reader.pread(got, 0).bytes, got.size());
      files::File writer = files::open(name, O_WRONLY | O_TRUNC);
      EXPECT_EQ(reader.pread(got, 0).to_string(), "end");
      EXPECT_EQ(writer.pread(got, 0).error, EBADF);
      EXPECT_EQ(reader.pwrite(got, 0).error, EBADF);
    });
  }
}

TEST_F(Files, OffsetsThatNoFileHasAndNoFileAreErrors) {
  make("file", 10);
  in_client([&] {
    std::array<std::byte, 4> byte{};
    files::File local = files::open(path("file"), O_RDWR);
    EXPECT_EQ(local.pread(byte, UINT64_MAX).error, EINVAL);
    files::File remote = files::open(url("file"), O_RDWR);
    EXPECT_EQ(remote.pread(byte, 8).to_string(), "2 bytes");
    files::File closed;
    EXPECT_EQ(closed.pread(byte, 0).error, EBADF);
    EXPECT_EQ(closed.sync().error, EBADF);
    EXPECT_TRUE(closed.view(0, 1).empty());
    EXPECT_TRUE(remote.close());
    EXPECT_EQ(remote.close().error, EBADF);
  });
}

TEST_F(Files, AFileOfAHostStaysItsParentsAndOneOfThisMachineIsTheChildsToo) {
  make("file", 100'000);
  in_client([&] {
    files::File local = files::open(path("file"), O_RDWR, 0, {.path = Path::cache});
    files::File remote = files::open(url("file"), O_RDWR);
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
