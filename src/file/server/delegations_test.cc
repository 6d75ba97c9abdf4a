// SPDX-License-Identifier: Apache-2.0
// A delegated file is not written before its clients have given it back, or their time is over.
#include "file/server/delegations.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/client/host_connection.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;
using namespace std::chrono_literals;
using Files = std::vector<FileIdentity>;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;

class FileDelegations : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_leases(path())) GTEST_SKIP() << "no leases here: " << std::strerror(errno);
  }
  FileDelegations() {
    std::ofstream(path()) << "content";
    struct stat found{};
    EXPECT_EQ(::stat(path().c_str(), &found), 0);
    file_ = {.device = found.st_dev, .inode = found.st_ino};
  }

  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  static Host::Handle open(Host& host, std::uint32_t flags = kFileOpenRead) {
    const Host::Opened opened = host.open("file", flags);
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }
  static bool delegates(Host& host, Host::Handle handle, std::uint64_t client) {
    FileStatus status{};
    std::chrono::milliseconds kept_for{};
    EXPECT_EQ(host.delegate(handle, client, status, kept_for), 0);
    EXPECT_EQ(status.size, 7U);
    return kept_for == std::chrono::milliseconds(kFileDelegationMs);
  }
  /// Asks until the delegation is granted: earlier leases may have to end first.
  static void delegate(Host& host, Host::Handle handle, std::uint64_t client) {
    while (!delegates(host, handle, client)) std::this_thread::sleep_for(1ms);
  }
  /// A program of the host opens the file, in a separate thread.
  [[nodiscard]] std::future<int> open_natively(int flags) const {
    return std::async(std::launch::async, [path = path().string(), flags] {
      const UniqueFd opened(::open(path.c_str(), flags | O_CLOEXEC));
      return opened.valid() ? 0 : errno;
    });
  }

  /// With this margin no delegation expires, however long this process is not scheduled.
  ServedDirectory served_{{.delegation_margin = 1h}};
  Host host_{served_.client()};
  RecallWatcher watcher_{served_};
  FileIdentity file_{};
};

TEST_F(FileDelegations, AProgramOfTheHostWritesOnceTheFileIsGivenBack) {
  for (const int flags : {O_WRONLY, O_RDWR | O_APPEND}) {
    const Host::Handle handle = open(host_);
    delegate(host_, handle, watcher_.number());
    auto opened = open_natively(flags);
    EXPECT_EQ(watcher_.await_recalls(), Files{file_});
    EXPECT_FALSE(delegates(host_, handle, watcher_.number())) << "while another waits";
    watcher_.give_back({file_});
    EXPECT_EQ(opened.get(), 0);
    EXPECT_EQ(host_.close(handle), 0);
  }
}

TEST_F(FileDelegations, ATruncationByNameWaits) {
  delegate(host_, open(host_), watcher_.number());
  auto cut = std::async(std::launch::async, [path = path().string()] { return ::truncate(path.c_str(), 3); });
  EXPECT_EQ(watcher_.await_recalls(), Files{file_});
  EXPECT_EQ(content_of(path()), "content");
  watcher_.give_back({file_});
  EXPECT_EQ(cut.get(), 0);
}

TEST_F(FileDelegations, AnotherClientAndTheOneItselfWriteOnceTheFileIsGivenBack) {
  Host other(served_.client());
  for (Host* const writer : {&other, &host_}) {
    Host reader(served_.client());
    delegate(reader, open(reader), watcher_.number());
    auto opened = std::async(std::launch::async, [writer] { return writer->open("file", kReadWrite); });
    EXPECT_EQ(watcher_.await_recalls(), Files{file_});
    watcher_.give_back({file_});
    const Host::Opened result = opened.get();
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(writer->close(result.handle), 0);
  }
}

TEST_F(FileDelegations, AllCallsThatOpenForWritingWait) {
  const Host::Handle handle = open(host_);
  Host other(served_.client());
  const auto waits = [&](auto call) {
    delegate(host_, handle, watcher_.number());
    auto result = std::async(std::launch::async, call);
    EXPECT_EQ(watcher_.await_recalls(), Files{file_});
    watcher_.give_back({file_});
    return result.get();
  };
  EXPECT_EQ(waits([&] { return other.names().set_size("file", 7); }), 0);
  const Host::Handle locked = open(other);
  const HostLocks::Opened owner = other.locks().open(locked, 0, std::make_shared<HeldLocks>());
  ASSERT_EQ(owner.error, 0);
  const FileLock lock{.offset = 0, .length = 0, .type = static_cast<std::uint32_t>(FileLockType::write), .reserved = 0};
  EXPECT_EQ(waits([&] { return other.locks().set(owner.handle, 0, lock); }), 0);
}

TEST_F(FileDelegations, WhoeverDoesNotGiveBackIsNotWaitedForLongerThanItsTime) {
  const ServedDirectory served;
  std::ofstream(served.root() / "file") << "content";
  Host host(served.client());
  RecallWatcher first(served);
  RecallWatcher second(served);
  delegate(host, open(host), first.number());
  EXPECT_TRUE(UniqueFd(::open((served.root() / "file").c_str(), O_WRONLY | O_CLOEXEC)).valid());
  delegate(host, open(host), second.number());
  Host other(served.client());
  EXPECT_EQ(other.open("file", kFileOpenWrite).error, 0);
}

TEST_F(FileDelegations, ReadersWaitForNobody) {
  delegate(host_, open(host_), watcher_.number());
  EXPECT_EQ(open_natively(O_RDONLY).get(), 0);
  Host other(served_.client());
  RecallWatcher others(served_);
  EXPECT_TRUE(delegates(other, open(other), others.number()));
}

TEST_F(FileDelegations, EachClientIsToldAndAllHaveToGiveBack) {
  RecallWatcher second(served_);
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  EXPECT_TRUE(delegates(host_, handle, second.number()));
  auto opened = open_natively(O_WRONLY);
  EXPECT_EQ(watcher_.await_recalls(), Files{file_});
  EXPECT_EQ(second.await_recalls(), Files{file_});
  second.give_back({file_});
  second.give_back({file_});
  watcher_.give_back({file_});
  EXPECT_EQ(opened.get(), 0);
}

TEST_F(FileDelegations, AFileThatIsOpenForWritingIsNotDelegated) {
  const Host::Handle handle = open(host_);
  {
    const UniqueFd writer(::open(path().c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_FALSE(delegates(host_, handle, watcher_.number()));
  }
  const Host::Handle writes = open(host_, kReadWrite);
  EXPECT_FALSE(delegates(host_, handle, watcher_.number()));
  EXPECT_EQ(host_.close(writes), 0);
  EXPECT_TRUE(delegates(host_, handle, watcher_.number()));
}

TEST_F(FileDelegations, OnlyAClientThatHearsOfRecallsGetsAny) {
  const Host::Handle handle = open(host_);
  EXPECT_FALSE(delegates(host_, handle, 0));
  EXPECT_FALSE(delegates(host_, handle, watcher_.number() + 1));
  std::uint64_t gone = 0;
  {
    RecallWatcher left(served_);
    gone = left.number();
  }
  while (delegates(host_, handle, gone)) std::this_thread::sleep_for(1ms);
  const Host::Opened directory = host_.open(".", kFileOpenRead | kFileOpenDirectory);
  FileStatus status{};
  std::chrono::milliseconds kept_for{1};
  EXPECT_EQ(host_.delegate(directory.handle, watcher_.number(), status, kept_for), 0);
  EXPECT_EQ(kept_for, 0ms);
  EXPECT_EQ(host_.delegate(handle + 77, watcher_.number(), status, kept_for), EBADF);
}

TEST_F(FileDelegations, AServerCanDoWithoutThem) {
  const ServedDirectory without({.delegates = false});
  std::ofstream(without.root() / "file") << "content";
  Host host(without.client());
  RecallWatcher watcher(without);
  EXPECT_FALSE(delegates(host, open(host), watcher.number()));
}

TEST_F(FileDelegations, ThoseOfAFileThatIsNotAskedForAnyMoreEnd) {
  const ServedDirectory served;
  std::ofstream(served.root() / "file") << "content";
  Host host(served.client());
  const RecallWatcher watcher(served);
  const auto descriptors = [&] {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(served.pid()) + "/fd");
    return std::distance(begin(all), end(all));
  };
  const Host::Handle handle = open(host);
  const auto before = descriptors();
  delegate(host, handle, watcher.number());
  while (descriptors() != before) std::this_thread::sleep_for(1ms);
}

TEST_F(FileDelegations, WhoeverTakesNoRecallsGetsNoMoreUntilItDoes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 4096) GTEST_SKIP() << "needs 4096 open files";
  for (std::size_t i = 0; i < kFileMaxIdentities; ++i) {
    const std::string name = "of " + std::to_string(i);
    std::ofstream(served_.root() / name) << "content";
    const Host::Opened opened = host_.open(name, kFileOpenRead);
    ASSERT_EQ(opened.error, 0);
    delegate(host_, opened.handle, watcher_.number());
    EXPECT_EQ(::open((served_.root() / name).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
    EXPECT_EQ(errno, EWOULDBLOCK);
    EXPECT_EQ(host_.close(opened.handle), 0);
  }
  const Host::Handle handle = open(host_);
  while (delegates(host_, handle, watcher_.number())) std::this_thread::sleep_for(1ms);  // until all are recalled
  const RecallWatcher second(served_);
  EXPECT_TRUE(delegates(host_, handle, second.number()));
  EXPECT_EQ(watcher_.await_recalls().size(), kFileMaxIdentities);
  EXPECT_TRUE(delegates(host_, handle, watcher_.number()));
}

TEST_F(FileDelegations, AnOpenThatIsTriedAgainHasItsTurn) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  EXPECT_EQ(open_natively(O_WRONLY | O_NONBLOCK).get(), EWOULDBLOCK);
  EXPECT_EQ(watcher_.await_recalls(), Files{file_});
  watcher_.give_back({file_});
  EXPECT_EQ(open_natively(O_WRONLY | O_NONBLOCK).get(), 0);
  delegate(host_, handle, watcher_.number());
}

TEST_F(FileDelegations, OneThatReadsAllTheTimeKeepsNobodyFromWriting) {
  std::atomic<bool> over = false;
  std::atomic<bool> granted = false;
  std::thread reader([&] {
    Host reading(served_.client());
    const Host::Handle handle = open(reading);
    FileStatus status{};
    std::chrono::milliseconds kept_for{};
    while (!over) {
      EXPECT_EQ(reading.delegate(handle, watcher_.number(), status, kept_for), 0);
      granted = kept_for != 0ms;
    }
  });
  std::thread returner([&] {
    while (!over) {
      const Files recalled = watcher_.await_recalls();
      if (!recalled.empty()) watcher_.give_back(recalled);
    }
  });
  for (int i = 0; i < 5; ++i) {
    while (!granted) std::this_thread::yield();
    const Host::Opened opened = host_.open("file", kFileOpenWrite);
    EXPECT_EQ(opened.error, 0);
    EXPECT_EQ(host_.close(opened.handle), 0);
  }
  over = true;
  reader.join();
  delegate(host_, open(host_), watcher_.number());
  EXPECT_EQ(open_natively(O_WRONLY).get(), 0);  // ends the wait for recalls
  returner.join();
}

TEST_F(FileDelegations, WhatWasNotRecalledIsNotGivenBack) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  watcher_.give_back({file_});
  auto opened = open_natively(O_WRONLY);
  EXPECT_EQ(watcher_.await_recalls(), Files{file_});
  watcher_.give_back({file_});
  EXPECT_EQ(opened.get(), 0);
}

TEST_F(FileDelegations, ATruncationNeedsAFileThatIsOpenForWriting) {
  EXPECT_EQ(host_.open("file", kFileOpenRead | kFileOpenTruncate).error, EINVAL);
  EXPECT_EQ(content_of(path()), "content");
}

TEST_F(FileDelegations, NonsenseIsRefused) {
  EXPECT_EQ(watcher_.ask(FileCall::await_recalls, 0).error, EINVAL) << "it has a number";
  EXPECT_EQ(watcher_.ask(FileCall::await_recalls, watcher_.number() + 1).error, EINVAL);
  watcher_.give_back({});
  watcher_.give_back({{.device = 1, .inode = 2}});
  // A second request before the answer to the first.
  watcher_.send(FileCall::await_recalls, watcher_.number());
  EXPECT_EQ(watcher_.ask(FileCall::await_recalls, watcher_.number()).error, ECONNRESET);
  FileStatus status{};
  EXPECT_EQ(host_.names().status("file", true, status), 0) << "others are served";
}

}  // namespace
}  // namespace wherry::file
