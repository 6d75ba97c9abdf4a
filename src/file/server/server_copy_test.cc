// SPDX-License-Identifier: Apache-2.0
// Copies between two files of a client, made by the server.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;
constexpr std::size_t kBytes = 5'000'001;

class FileCopies : public ::testing::Test {
 protected:
  [[nodiscard]] Host::Handle open(const std::string& name, std::uint32_t flags = kReadWrite | kFileOpenCreate) {
    const Host::Opened opened = host_.open(name, flags, 0644);
    EXPECT_EQ(opened.error, 0) << name;
    return opened.handle;
  }
  [[nodiscard]] Host::Handle filled(const std::string& name) {
    const Host::Handle handle = open(name);
    EXPECT_EQ(host_.write(handle, 0, pattern_.bytes(kBytes, 1)).bytes, kBytes);
    return handle;
  }
  [[nodiscard]] bool holds(const std::string& name, std::size_t offset) const {
    const std::string content = content_of(served_.root() / name);
    return content.size() == kBytes + offset && pattern_.matches(as_data(content).subspan(offset), 1);
  }

  [[nodiscard]] bool server_has_open(const std::string& name) const {
    const std::filesystem::path file = served_.root() / name;
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(served_.pid()) + "/fd");
    return std::any_of(begin(all), end(all), [&](const auto& one) {
      std::error_code closed;
      return std::filesystem::read_symlink(one, closed) == file;
    });
  }

  const Pattern pattern_{5};
  ServedDirectory served_;
  Host host_{served_.client()};
};

TEST_F(FileCopies, MoveWhatIsThereAndEndWithTheFile) {
  const Host::Handle from = filled("from");
  const Host::Handle to = open("to");
  EXPECT_EQ(host_.copy(from, 0, to, 77, kFileMaxLength + 1).bytes, kBytes);
  EXPECT_TRUE(holds("to", 77));
  EXPECT_EQ(host_.copy(from, kBytes - 3, to, 0, 100).bytes, 3U);
  EXPECT_EQ(host_.copy(from, kBytes, to, 0, 100).bytes, 0U);
  EXPECT_EQ(host_.copy(from, 0, to, 0, 0).bytes, 0U);
  EXPECT_EQ(host_.flush(to), 0);
}

TEST_F(FileCopies, AreRefusedAsTheKernelRefusesThem) {
  const Host::Handle from = filled("from");
  const Host::Handle to = open("to");
  const auto error = [&](Host::Handle one, std::uint64_t offset, Host::Handle other, std::uint64_t to_offset,
                         std::uint64_t length) { return host_.copy(one, offset, other, to_offset, length).error; };
  EXPECT_EQ(error(from, 0, open("from"), 3 << 20, 4 << 20), EINVAL) << "the pieces do not overlap, the ranges do";
  EXPECT_EQ(error(from, 2 << 20, from, 0, 4 << 20), EINVAL);
  EXPECT_EQ(error(from, 0, from, 2 << 20, 2 << 20), 0);
  EXPECT_EQ(error(from, 0, 77, 0, 10), EBADF);
  EXPECT_EQ(error(77, 0, to, 0, 10), EBADF);
  EXPECT_EQ(error(from, 0, open("to", kFileOpenRead), 0, 10), EBADF);
  EXPECT_EQ(error(open("other", kFileOpenWrite | kFileOpenCreate), 0, to, 0, 10), EBADF);
  EXPECT_EQ(error(from, 0, open("to", kFileOpenWrite | kFileOpenAppend), 0, 10), EBADF);
  EXPECT_EQ(error(open(".", kFileOpenRead | kFileOpenDirectory), 0, to, 0, 10), EISDIR);
  EXPECT_EQ(error(from, UINT64_MAX, to, 0, 10), EINVAL);
  EXPECT_EQ(error(from, 0, to, INT64_MAX - 5, 10), EINVAL);
}

TEST_F(FileCopies, WithinAFileEndWhereItEndedAtFirst) {
  const Host::Handle file = filled("file");
  EXPECT_EQ(host_.copy(file, 0, file, kBytes, kBytes + 100).bytes, kBytes);
  EXPECT_EQ(content_of(served_.root() / "file").size(), 2 * kBytes);
  EXPECT_EQ(host_.copy(file, 2 * kBytes - 3, file, 0, kBytes).bytes, 3U) << "what is there does not overlap";
  EXPECT_EQ(host_.copy(file, 2 * kBytes, file, 0, kBytes).bytes, 0U);
  EXPECT_EQ(host_.flush(file), 0);
}

TEST_F(FileCopies, GoOnWithTheNextServerWhenOneIsKilled) {
  const Host::Handle from = filled("from");
  const Host::Handle to = open("to");
  ASSERT_EQ(host_.flush(from), 0);
  for (const int time : {1, 3}) {
    served_.plan().kill_at(FaultPoint::piece_written, time);
    EXPECT_EQ(host_.copy(from, 0, to, 0, kBytes).bytes, kBytes);
    EXPECT_TRUE(holds("to", 0));
  }
  served_.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host_.copy(from, 0, to, 5, kBytes).bytes, kBytes);
  EXPECT_TRUE(holds("to", 5));
  EXPECT_EQ(served_.deaths(), 3);
}

TEST_F(FileCopies, IntoAFileThatIsAnotherNowAreStale) {
  const Host::Handle from = filled("from");
  const Host::Handle to = open("to");
  std::filesystem::remove(served_.root() / "to");
  std::ofstream(served_.root() / "to") << "another file";
  served_.kill();
  EXPECT_EQ(host_.copy(from, 0, to, 0, kBytes).error, ESTALE);
  EXPECT_EQ(content_of(served_.root() / "to"), "another file");
}

TEST_F(FileCopies, OfAServerForReadingAreRefused) {
  EXPECT_EQ(host_.flush(filled("from")), 0);
  ServedDirectory reading({.root = served_.root().string(), .read_only = true});
  Host host(reading.client());
  const Host::Handle from = host.open("from", kFileOpenRead).handle;
  EXPECT_EQ(host.copy(from, 0, from, 100, 10).error, EROFS);
}

/// A client that sends a request and does not wait for the answer.
class Asker {
 public:
  explicit Asker(const std::string& address) : stream_(connect(address, {})) {
    FileHello hello{};
    hello.version = kFileVersion;
    hello.magic = kFileMagic;
    send(hello);
    receive(hello);
  }
  std::uint64_t open(std::string_view name) {
    FileRequest request{};
    request.call = static_cast<std::uint32_t>(FileCall::open);
    request.flags = kReadWrite;
    request.name_bytes = static_cast<std::uint32_t>(name.size());
    send(request);
    stream_.send(as_data(name));
    FileAnswer answer{};
    FileStatus status{};
    receive(answer);
    receive(status);
    return answer.value;
  }
  void ask_for_copy(std::uint64_t from, std::uint64_t to, std::uint64_t length) {
    FileRequest request{};
    request.call = static_cast<std::uint32_t>(FileCall::copy);
    request.handle = from;
    request.length = length;
    request.second_bytes = sizeof(FileCopy);
    send(request);
    send(FileCopy{.handle = to, .offset = 0});
  }

 private:
  template <class T>
  void send(const T& record) {
    EXPECT_TRUE(stream_.send(std::as_bytes(std::span(&record, 1))).ok());
  }
  template <class T>
  void receive(T& record) {
    EXPECT_TRUE(stream_.receive_all(std::as_writable_bytes(std::span(&record, 1))).ok());
  }

  Stream stream_;
};

TEST_F(FileCopies, OfAClientThatDiesEnd) {
  constexpr int kPieces = 256;
  std::ofstream(served_.root() / "from").flush();
  std::ofstream(served_.root() / "to").flush();
  std::filesystem::resize_file(served_.root() / "from", std::uintmax_t{kPieces} << 20);
  std::atomic<int>& made = served_.plan().passed.at(static_cast<std::size_t>(FaultPoint::piece_written));
  {
    Asker client(served_.address());
    const std::uint64_t from = client.open("from");
    client.ask_for_copy(from, client.open("to"), std::uint64_t{kPieces} << 20);
    while (made == 0) std::this_thread::yield();
  }
  while (server_has_open("to")) std::this_thread::yield();
  EXPECT_LT(made, kPieces);
}

}  // namespace
}  // namespace wherry::file
