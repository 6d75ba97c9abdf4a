// SPDX-License-Identifier: Apache-2.0
// A client sees the same through the server as of the files themselves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "base/machine.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

using namespace layout;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;

class FileServer : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] Host::Handle create(const std::string& name, std::uint32_t flags = kReadWrite) {
    const Host::Opened opened = host_.open(name, flags | kFileOpenCreate, 0644);
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }

  [[nodiscard]] static HostOptions client_of(const ServedDirectory& served) {
    HostOptions options = served.client();
    options.borrows = GetParam();
    return options;
  }

  const Pattern pattern_{5};
  ServedDirectory served_;
  Host host_{client_of(served_)};
};

INSTANTIATE_TEST_SUITE_P(Data, FileServer, ::testing::Bool(),
                         [](const auto& data) { return data.param ? "ByLentDescriptors" : "ThroughTheServer"; });

TEST_P(FileServer, WhatIsWrittenIsInTheFileAndWhatIsInTheFileIsRead) {
  const Host::Handle handle = create("file");
  for (const std::size_t bytes : {1UL, 511UL, 4096UL, 65'535UL, 65'537UL, 1'000'003UL, 6'000'000UL}) {
    const auto data = pattern_.bytes(bytes, bytes);
    ASSERT_EQ(host_.write(handle, 3, data).bytes, bytes);
    const std::string content = content_of(served_.root() / "file");
    ASSERT_GE(content.size(), bytes + 3);
    EXPECT_TRUE(pattern_.matches(as_data(content).subspan(3, bytes), bytes));
    std::vector<std::byte> back(bytes);
    ASSERT_EQ(host_.read(handle, 3, back).bytes, bytes);
    EXPECT_TRUE(pattern_.matches(back, bytes));
    EXPECT_EQ(host_.read(handle, content.size() - 1, back).bytes, 1U);
    EXPECT_EQ(host_.read(handle, content.size(), back).bytes, 0U);
  }
  EXPECT_EQ(host_.flush(handle), 0);
  EXPECT_EQ(host_.flush(handle, true), 0);
  EXPECT_EQ(host_.close(handle), 0);
  EXPECT_EQ(host_.close(handle), EBADF);
  EXPECT_EQ(host_.read(handle, 0, std::span<std::byte>()).error, EBADF);
}

TEST_P(FileServer, NamesTheRunOfItsKernel) { EXPECT_EQ(host_.boot(), own_boot_id()); }

TEST_P(FileServer, ManyBuffersAreOne) {
  const Host::Handle handle = create("file");
  std::vector<std::vector<std::byte>> pieces;
  std::vector<iovec> buffers;
  std::size_t total = 0;
  for (const std::size_t bytes : {0UL, 1UL, 70'000UL, 0UL, 5UL, 4096UL, 300'000UL}) {
    pieces.push_back(pattern_.bytes(bytes, total));
    buffers.push_back({pieces.back().data(), bytes});
    total += bytes;
  }
  EXPECT_EQ(host_.write(handle, 0, buffers).bytes, total);
  EXPECT_TRUE(pattern_.matches(as_data(content_of(served_.root() / "file")), 0));
  for (const iovec& buffer : buffers)
    std::fill_n(static_cast<std::byte*>(buffer.iov_base), buffer.iov_len, std::byte{});
  EXPECT_EQ(host_.read(handle, 0, buffers).bytes, total);
  std::size_t position = 0;
  for (const auto& piece : pieces) {
    EXPECT_TRUE(pattern_.matches(piece, position));
    position += piece.size();
  }
}

TEST_P(FileServer, AFileThatShrinksWhileItIsReadEndsThere) {
  const Host::Handle handle = create("file");
  ASSERT_EQ(host_.set_size(handle, 10'000'000), 0);
  Child shrinker([path = (served_.root() / "file").string()] {
    for (int i = 0; i < 20'000; ++i) {
      if (::truncate(path.c_str(), i % 2 == 0 ? 1000 : 10'000'000) != 0) return false;
    }
    return true;
  });
  std::vector<std::byte> back(10'000'000);
  for (int i = 0; i < 50; ++i) {
    const Result result = host_.read(handle, 0, back);
    ASSERT_FALSE(result.failed());
    EXPECT_GE(result.bytes, 1000U);
  }
}

/// The server copies what is read repeatedly out of the page cache, and sees no truncation by a program of the host.
TEST_P(FileServer, AFileThatIsReadRepeatedlyEndsWhereAnybodyHasCutIt) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const Host::Handle handle = create("file");
  const std::string path = served_.root() / "file";
  const auto data = pattern_.bytes(kBytes, 0);
  ASSERT_EQ(host_.write(handle, 0, data).bytes, kBytes);
  std::vector<std::byte> back(kBytes);
  for (int i = 0; i < 150; ++i) ASSERT_EQ(host_.read(handle, 0, back).bytes, kBytes);
  for (std::size_t end = kBytes - 1000; end > kBytes / 2; end -= 5000) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(end)), 0);
    ASSERT_EQ(host_.read(handle, 0, back).bytes, end);
    ASSERT_TRUE(pattern_.matches(std::span(back).first(end), 0));
    ASSERT_EQ(host_.write(handle, 0, data).bytes, kBytes);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(host_.read(handle, 0, back).bytes, kBytes);
    ASSERT_TRUE(pattern_.matches(back, 0));
  }
}

TEST_P(FileServer, RandomOperationsLeaveWhatTheyLeaveInMemory) {
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const Host::Handle handle = create("file");
  const Host::Handle appending = create("file", kFileOpenWrite | kFileOpenAppend);
  std::vector<std::byte> model;
  std::vector<std::byte> buffer;
  const int operations = soaking() ? 100'000 : 1000;
  for (int i = 0; i < operations; ++i) {
    const std::size_t offset = random() % 400'000;
    const std::size_t bytes = random() % (random() % 4 == 0 ? 300'000 : 5000);
    switch (random() % 6) {
      case 0:
      case 1: {
        const auto data = pattern_.bytes(bytes, random() % 1000);
        ASSERT_EQ(host_.write(handle, offset, data).bytes, bytes);
        if (bytes == 0) break;
        model.resize(std::max(model.size(), offset + bytes));
        std::ranges::copy(data, model.begin() + static_cast<std::ptrdiff_t>(offset));
        break;
      }
      case 2:
        if (model.size() > 1'000'000) break;
        ASSERT_EQ(host_.append(appending, pattern_.bytes(bytes, i)).bytes, bytes);
        model.resize(model.size() + bytes);
        pattern_.fill(std::span(model).last(bytes), static_cast<std::uint64_t>(i));
        break;
      case 3:
        ASSERT_EQ(host_.set_size(handle, offset), 0);
        model.resize(offset);
        break;
      case 4: {
        if (bytes == 0 || offset + bytes > model.size()) break;
        const int error = host_.allocate(handle, kFileAllocatePunch | kFileAllocateKeepSize, offset, bytes);
        if (error == EOPNOTSUPP) break;
        ASSERT_EQ(error, 0);
        std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(offset), bytes, std::byte{});
        break;
      }
      default: {
        buffer.resize(bytes);
        const std::size_t there = offset < model.size() ? std::min(bytes, model.size() - offset) : 0;
        ASSERT_EQ(host_.read(handle, offset, buffer).bytes, there);
        ASSERT_TRUE(std::ranges::equal(std::span(buffer).first(there),
                                       std::span(model).subspan(std::min(offset, model.size()), there)));
      }
    }
  }
  const std::string content = content_of(served_.root() / "file");
  EXPECT_TRUE(std::ranges::equal(as_data(content), model));
}

TEST_P(FileServer, AppendsOfManyClientsDoNotMix) {
  // More than a turn of a session, and more than a ring.
  constexpr std::size_t kRecord = 3'000'000;
  constexpr std::size_t kRecords = 3;
  std::vector<Child> children;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    children.emplace_back([&, letter] {
      Host host(client_of(served_));
      const Host::Opened opened = host.open("log", kFileOpenWrite | kFileOpenAppend | kFileOpenCreate, 0644);
      const std::string record(kRecord, letter);
      for (std::size_t i = 0; i < kRecords; ++i) {
        if (host.append(opened.handle, as_data(record)).bytes != kRecord) return false;
      }
      return true;
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  const std::string content = content_of(served_.root() / "log");
  ASSERT_EQ(content.size(), 4 * kRecords * kRecord);
  for (std::size_t i = 0; i < content.size(); i += kRecord) {
    EXPECT_TRUE(content.compare(i, kRecord, std::string(kRecord, content[i])) == 0) << "record " << i / kRecord;
  }
}

TEST_P(FileServer, NamesAreMadeMovedAndRemoved) {
  EXPECT_EQ(host_.names().make_directory("a", 0755), 0);
  EXPECT_EQ(host_.names().make_directory("a", 0755), EEXIST);
  EXPECT_EQ(host_.names().make_directory("x/y", 0755), ENOENT);
  const Host::Handle handle = create("a/file");
  EXPECT_EQ(host_.write(handle, 0, as_data("content")).bytes, 7U);
  EXPECT_EQ(host_.names().link("a/file", "b"), 0);
  EXPECT_EQ(host_.names().link("a/file", "b"), EEXIST);
  EXPECT_EQ(host_.names().symlink("c", "a/file"), 0);
  std::string target;
  EXPECT_EQ(host_.names().read_link("c", target), 0);
  EXPECT_EQ(target, "a/file");
  EXPECT_EQ(host_.names().read_link("b", target), EINVAL);
  EXPECT_EQ(host_.names().rename("b", "c", kFileRenameNoReplace), EEXIST);
  EXPECT_EQ(host_.names().rename("b", "a/d"), 0);
  EXPECT_EQ(host_.names().remove("a", true), ENOTEMPTY);
  EXPECT_EQ(host_.names().remove("a"), EISDIR);
  EXPECT_EQ(host_.names().remove("c"), 0);
  EXPECT_EQ(host_.names().remove("c"), ENOENT);
  EXPECT_EQ(host_.names().remove("a/file"), 0);
  // As with any removed file, an open handle still works.
  EXPECT_EQ(read_all(host_, handle), "content");
  EXPECT_EQ(content_of(served_.root() / "a/d"), "content");
  EXPECT_EQ(host_.open("", kFileOpenRead).error, ENOENT);
  EXPECT_EQ(host_.open(std::string("a\0b", 3), kFileOpenRead).error, EINVAL);
  EXPECT_EQ(host_.open(std::string(5000, 'n'), kFileOpenRead).error, ENAMETOOLONG);
  EXPECT_EQ(host_.open(std::string(300, 'n'), kFileOpenRead).error, ENAMETOOLONG);
  EXPECT_EQ(host_.open("../outside", kFileOpenRead).error, EXDEV);
  EXPECT_EQ(host_.open("a", kReadWrite).error, EISDIR);
  EXPECT_EQ(host_.open("a/d", kReadWrite | kFileOpenCreate | kFileOpenExclusive, 0644).error, EEXIST);
  EXPECT_EQ(host_.open("a/d", 1U << 20).error, EINVAL);
}

TEST_P(FileServer, FifosAndSocketsAreMadeAndNothingElse) {
  EXPECT_EQ(host_.names().make_node("fifo", FileNode::fifo, 0640), 0);
  EXPECT_EQ(host_.names().make_node("socket", FileNode::socket, 0700), 0);
  FileStatus status{};
  EXPECT_EQ(host_.names().status("fifo", false, status), 0);
  EXPECT_EQ(status.mode, S_IFIFO | 0640U);
  EXPECT_EQ(host_.names().status("socket", false, status), 0);
  EXPECT_EQ(status.mode, S_IFSOCK | 0700U);
  EXPECT_EQ(host_.names().make_node("fifo", FileNode::fifo, 0640), EEXIST);
  EXPECT_EQ(host_.names().make_node("../fifo", FileNode::fifo, 0640), EXDEV);
  EXPECT_EQ(host_.names().make_node("none/fifo", FileNode::fifo, 0640), ENOENT);
  EXPECT_EQ(host_.names().make_node("other", static_cast<FileNode>(3), S_IFCHR | 0640), EPERM);
  EXPECT_EQ(host_.names().make_node("device", FileNode::fifo, S_IFCHR | 0640), 0);
  EXPECT_EQ(host_.names().status("device", false, status), 0);
  EXPECT_EQ(status.mode, S_IFIFO | 0640U);
  EXPECT_EQ(host_.open("fifo", kFileOpenRead).error, EOPNOTSUPP);
}

TEST_P(FileServer, AListTellsTheStatusOfEachNameBelowTheDirectory) {
  for (int i = 0; i < 500; ++i)
    std::ofstream(served_.root() / (std::to_string(i) + std::string(static_cast<std::size_t>(i % 200), 'n'))) << i;
  std::filesystem::create_symlink("/etc/passwd", served_.root() / "out");
  const Host::Handle handle = host_.open(".", kFileOpenRead | kFileOpenDirectory).handle;
  std::vector<Host::Entry> entries;
  std::size_t known = 0;
  for (std::uint64_t cookie = 0; host_.list_with_status(handle, cookie, 8192, entries) == 0 && !entries.empty();) {
    std::size_t bytes = 0;
    for (const Host::Entry& entry : entries) {
      bytes += (152 + entry.name.size() + 7) / 8 * 8;
      EXPECT_EQ(entry.status.has_value(), entry.name != "." && entry.name != "..") << entry.name;
      if (!entry.status) continue;
      ++known;
      FileStatus status{};
      EXPECT_EQ(host_.names().status(entry.name, false, status), 0);
      EXPECT_EQ(std::memcmp(&status, &*entry.status, sizeof status), 0) << entry.name;
    }
    EXPECT_LE(bytes, 8192U);
    cookie = entries.back().cookie;
  }
  EXPECT_EQ(known, 501U);
  EXPECT_EQ(host_.list_with_status(handle, 0, 100, entries), EINVAL);
}

TEST_P(FileServer, StatusAndSizesAndTimesAreThoseOfTheFile) {
  const Host::Handle handle = create("file");
  EXPECT_EQ(host_.write(handle, 0, as_data("content")).bytes, 7U);
  EXPECT_EQ(host_.names().set_mode("file", 0604), 0);
  EXPECT_EQ(host_.names().set_owner("file", true, ::geteuid(), kFileOwnerKept), 0);
  EXPECT_EQ(host_.names().set_owner("file", true, kFileOwnerKept, kFileOwnerKept), 0);
  EXPECT_EQ(host_.names().set_owner("none", true, ::geteuid(), kFileOwnerKept), ENOENT);
  EXPECT_EQ(host_.names().set_times("file", true, {{5, 6, 0}, {7, 8, 0}}), 0);
  EXPECT_EQ(host_.names().set_times("file", true, {{0, kFileTimeKept, 0}, {9, 8, 0}}), 0);
  EXPECT_EQ(host_.names().set_times("file", true, {{0, 1'000'000'000, 0}, {}}), EINVAL);
  struct stat real{};
  ASSERT_EQ(::stat((served_.root() / "file").c_str(), &real), 0);
  EXPECT_EQ(real.st_mode & 07777U, 0604U);
  FileStatus by_handle{};
  FileStatus by_name{};
  EXPECT_EQ(host_.status(handle, by_handle), 0);
  EXPECT_EQ(host_.names().status("file", true, by_name), 0);
  EXPECT_EQ(std::memcmp(&by_handle, &by_name, sizeof by_name), 0);
  EXPECT_EQ(by_name.inode, real.st_ino);
  EXPECT_EQ(by_name.device, real.st_dev);
  EXPECT_EQ(by_name.size, 7U);
  EXPECT_EQ(by_name.mode, real.st_mode);
  EXPECT_EQ(by_name.accessed.seconds, 5);
  EXPECT_EQ(by_name.modified.seconds, 9);
  EXPECT_EQ(by_name.modified.nanoseconds, 8U);
  EXPECT_EQ(host_.names().set_size("file", 3), 0);
  EXPECT_EQ(content_of(served_.root() / "file"), "con");
  EXPECT_EQ(host_.names().symlink("link", "file"), 0);
  EXPECT_EQ(host_.names().status("link", false, by_name), 0);
  EXPECT_TRUE(S_ISLNK(by_name.mode));
  FileSystemStatus system{};
  EXPECT_EQ(host_.names().file_system(".", system), 0);
  EXPECT_GT(system.blocks, 0U);
}

TEST_P(FileServer, HolesAreFoundAsTheFileSystemHasThem) {
  const Host::Handle handle = create("file");
  EXPECT_EQ(host_.write(handle, 1 << 20, as_data("data")).bytes, 4U);
  const int real = ::open((served_.root() / "file").c_str(), O_RDONLY | O_CLOEXEC);
  const UniqueFd closes(real);
  std::uint64_t found = 0;
  EXPECT_EQ(host_.seek(handle, 0, FileSeek::data, found), 0);
  EXPECT_EQ(found, static_cast<std::uint64_t>(::lseek(real, 0, SEEK_DATA)));
  EXPECT_EQ(host_.seek(handle, 0, FileSeek::hole, found), 0);
  EXPECT_EQ(found, static_cast<std::uint64_t>(::lseek(real, 0, SEEK_HOLE)));
  EXPECT_EQ(host_.seek(handle, 2 << 20, FileSeek::data, found), ENXIO);
}

TEST_P(FileServer, ALargeDirectoryIsListedOnce) {
  std::map<std::string, int> wanted;
  for (int i = 0; i < 1500; ++i) {
    const std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(i % 200), 'n');
    std::ofstream(served_.root() / name) << i;
    wanted[name] = 1;
  }
  wanted["."] = wanted[".."] = 1;
  const Host::Handle handle = host_.open(".", kFileOpenRead | kFileOpenDirectory).handle;
  std::map<std::string, int> listed;
  std::vector<Host::Entry> entries;
  std::uint64_t cookie = 0;
  while (host_.list(handle, cookie, entries) == 0 && !entries.empty()) {
    for (const Host::Entry& entry : entries) ++listed[entry.name];
    cookie = entries.back().cookie;
  }
  EXPECT_EQ(listed, wanted);
  EXPECT_EQ(host_.list(create("file"), 0, entries), ENOTDIR);
}

TEST(FileServerReadOnly, NothingIsChanged) {
  ServedDirectory served({.read_only = true});
  std::ofstream(served.root() / "file") << "content";
  Host host(served.client());
  EXPECT_TRUE(host.read_only());
  const Host::Opened opened = host.open("file", kFileOpenRead);
  EXPECT_EQ(opened.error, 0);
  EXPECT_EQ(read_all(host, opened.handle), "content");
  EXPECT_EQ(host.open("file", kFileOpenWrite).error, EROFS);
  EXPECT_EQ(host.open("file", kFileOpenRead | kFileOpenTruncate).error, EROFS);
  EXPECT_EQ(host.open("new", kFileOpenRead | kFileOpenCreate, 0644).error, EROFS);
  EXPECT_EQ(host.write(opened.handle, 0, as_data("x")).error, EROFS);
  EXPECT_EQ(host.append(opened.handle, as_data("x")).error, EROFS);
  EXPECT_EQ(host.names().set_size("file", 0), EROFS);
  EXPECT_EQ(host.names().set_mode("file", 0), EROFS);
  EXPECT_EQ(host.names().set_owner("file", true, ::geteuid(), kFileOwnerKept), EROFS);
  EXPECT_EQ(host.names().set_times("file", true, {}), EROFS);
  EXPECT_EQ(host.allocate(opened.handle, 0, 0, 100), EROFS);
  EXPECT_EQ(host.names().make_directory("d", 0755), EROFS);
  EXPECT_EQ(host.names().remove("file"), EROFS);
  EXPECT_EQ(host.names().rename("file", "other"), EROFS);
  EXPECT_EQ(host.names().link("file", "other"), EROFS);
  EXPECT_EQ(host.names().symlink("other", "file"), EROFS);
  EXPECT_EQ(host.names().make_node("fifo", FileNode::fifo, 0600), EROFS);
  EXPECT_EQ(host.xattrs().set({.handle = 0, .name = "file"}, "user.x", as_data("x")), EROFS);
  EXPECT_EQ(host.xattrs().remove({.handle = 0, .name = "file"}, "user.x"), EROFS);
  FileStatus status{};
  EXPECT_EQ(host.names().status("file", true, status), 0);
  EXPECT_EQ(content_of(served.root() / "file"), "content");
}

}  // namespace
}  // namespace wherry::file
