// SPDX-License-Identifier: Apache-2.0
// Data that moves by the server's own descriptors, which the client takes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "base/scoped_environment.hpp"
#include "file/client/lent_file.hpp"
#include "file/wire/status.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

namespace fs = std::filesystem;
using namespace layout;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;
constexpr std::uint32_t kAppend = kFileOpenWrite | kFileOpenAppend;
constexpr std::size_t kBytes = 100'000;

const Pattern& pattern() {
  static const Pattern made(23);
  return made;
}

HostOptions borrower(const ServedDirectory& served) {
  HostOptions options = served.client();
  options.borrows = true;
  return options;
}

/// The number of requests to the servers of a directory so far.
int requests(const ServedDirectory& served) {
  return served.plan().passed.at(static_cast<std::size_t>(FaultPoint::request_taken));
}

/// Whether a write, a read and a flush send no request to the server.
bool moves_by_itself(const ServedDirectory& served, Host& host, Host::Handle handle) {
  const auto data = pattern().bytes(kBytes, 0);
  std::vector<std::byte> back(kBytes);
  const int before = requests(served);
  EXPECT_EQ(host.write(handle, 0, data).bytes, kBytes);
  EXPECT_EQ(host.flush(handle), 0);
  EXPECT_EQ(host.read(handle, 0, back).bytes, kBytes);
  EXPECT_TRUE(pattern().matches(back, 0));
  EXPECT_TRUE(pattern().matches(as_data(content_of(served.root() / "file")), 0));
  return requests(served) == before;
}

TEST(LentFiles, DataGoesWithoutTheServer) {
  const ServedDirectory served;
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  EXPECT_TRUE(moves_by_itself(served, host, file.handle));
  const Host::Opened log = host.open("log", kAppend | kFileOpenCreate, 0644);
  ASSERT_EQ(host.append(log.handle, pattern().bytes(10, 0)).bytes, 10U);
  const int before = requests(served);
  std::ofstream(served.root() / "log", std::ios::app) << "between";
  ASSERT_EQ(host.append(log.handle, pattern().bytes(10, 10)).bytes, 10U);
  EXPECT_EQ(requests(served), before);
  EXPECT_EQ(content_of(served.root() / "log").substr(10, 7), "between");
  EXPECT_EQ(content_of(served.root() / "log").size(), 27U);
}

void goes_through_the_server(const ServedDirectory& served, const HostOptions& options) {
  Host host(options);
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  ASSERT_EQ(file.error, 0);
  EXPECT_FALSE(host.lends());
  EXPECT_FALSE(moves_by_itself(served, host, file.handle));
}

TEST(LentFiles, AServerThatTheSystemDoesNotVouchForLendsNothing) {
  const ServedDirectory served;
  const ScopedEnvironment hidden("WHERRY_FAULTS", "hide_peer=1");
  HostOptions options = borrower(served);
  options.address.insert(std::string("wherry+").size(), "faulty+");
  goes_through_the_server(served, options);
}

TEST(LentFiles, AServerOfAnotherMachineLendsNothing) {
  const ServedDirectory served;
  const ScopedEnvironment elsewhere("WHERRY_MACHINE", "another");
  goes_through_the_server(served, borrower(served));
}

TEST(LentFiles, AttributesOfAnOpenFileGoWithoutTheServer) {
  const ServedDirectory served;
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  const int before = requests(served);
  FileStatus status{};
  const FileTimes times{.accessed = {.seconds = 0, .nanoseconds = kFileTimeKept, .reserved = 0},
                        .modified = {.seconds = 5, .nanoseconds = 7, .reserved = 0}};
  const FileTimes wrong{.accessed = {.seconds = 0, .nanoseconds = 2'000'000'000, .reserved = 0}, .modified = {}};
  EXPECT_EQ(host.set_mode(file.handle, 0600), 0);
  EXPECT_EQ(host.set_owner(file.handle, kFileOwnerKept, ::getegid()), 0);
  EXPECT_EQ(host.set_times(file.handle, times), 0);
  EXPECT_EQ(host.set_times(file.handle, wrong), EINVAL);
  EXPECT_EQ(host.status(file.handle, status), 0);
  EXPECT_EQ(requests(served), before);
  EXPECT_EQ(status.mode & 07777U, 0600U);
  EXPECT_EQ(status.group, ::getegid());
  EXPECT_EQ(status.modified.seconds, 5);
  EXPECT_EQ(status.modified.nanoseconds, 7U);
}

TEST(LentFiles, AServerForReadingHasNothingChangedByALentDescriptor) {
  const ServedDirectory served({.read_only = true});
  std::ofstream(served.root() / "file") << "content";
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kFileOpenRead);
  ASSERT_EQ(file.error, 0);
  EXPECT_EQ(host.set_mode(file.handle, 0600), EROFS);
  EXPECT_EQ(host.set_owner(file.handle, kFileOwnerKept, kFileOwnerKept), EROFS);
  EXPECT_EQ(host.set_times(file.handle, FileTimes{}), EROFS);
}

TEST(LentFiles, AClientAndAServerCanRefuse) {
  const ServedDirectory served;
  Host host(served.client());
  EXPECT_FALSE(moves_by_itself(served, host, host.open("file", kReadWrite | kFileOpenCreate, 0644).handle));
  const ServedDirectory keeping({.lends = false});
  Host other(borrower(keeping));
  EXPECT_FALSE(moves_by_itself(keeping, other, other.open("file", kReadWrite | kFileOpenCreate, 0644).handle));
}

TEST(LentFiles, WithoutRoomForADescriptorDataGoesThroughTheServer) {
  const ServedDirectory served;
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto data = pattern().bytes(kBytes, 0);
  const Result result = host.write(file.handle, 0, data);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(result.bytes, kBytes);
  EXPECT_FALSE(moves_by_itself(served, host, file.handle));
}

TEST(LentFiles, DataGoesOnWhileTheServerIsDead) {
  const ServedDirectory served;
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  ASSERT_TRUE(moves_by_itself(served, host, file.handle));
  served.plan().kill_at(FaultPoint::request_taken, 1);
  FileStatus status{};
  ASSERT_EQ(host.names().status(".", true, status), 0);  // kills the server; the next one answers
  served.plan().point = -1;
  EXPECT_EQ(served.deaths(), 1);
  EXPECT_TRUE(moves_by_itself(served, host, file.handle));
  EXPECT_EQ(host.close(file.handle), 0);
}

/// The server stays dead. Another thread waits for it, for an unlimited time.
TEST(LentFiles, NobodyWaitsForADeadServerWhoNeedsNone) {
  const test::TemporaryDirectory directory;
  std::optional<ServedDirectory> served(std::in_place, ServerOptions{.root = directory.path().string()});
  Child client([&] {
    auto* const host = new Host(borrower(*served));
    const Host::Opened file = host->open("file", kReadWrite | kFileOpenCreate, 0644);
    const Host::Opened log = host->open("log", kAppend | kFileOpenCreate, 0644);
    const Host::Opened flushed = host->open("flushed", kReadWrite | kFileOpenCreate, 0644);
    const auto data = pattern().bytes(kBytes, 0);
    EXPECT_TRUE(moves_by_itself(*served, *host, file.handle));
    EXPECT_EQ(host->append(log.handle, data).bytes, kBytes);
    const pid_t server = served->pid();
    served->keep_dead();
    while (::kill(server, 0) == 0) ::usleep(1000);
    std::atomic<bool> waits{false};
    std::thread([&] {
      waits = true;
      FileStatus status{};
      (void)host->names().status(".", true, status);
    }).detach();
    while (!waits) ::usleep(1000);
    for (int i = 0; i < 20; ++i) {  // before and after the other thread has begun to wait
      ::usleep(1000);
      std::vector<std::byte> back(kBytes);
      FileStatus status{};
      EXPECT_EQ(host->write(file.handle, 0, data).bytes, kBytes);
      EXPECT_EQ(host->flush(file.handle), 0);
      EXPECT_EQ(host->read(file.handle, 0, back).bytes, kBytes);
      EXPECT_TRUE(pattern().matches(back, 0));
      EXPECT_EQ(host->append(log.handle, data).bytes, kBytes);
      EXPECT_EQ(host->status(log.handle, status), 0);
      EXPECT_EQ(status.size, (static_cast<std::size_t>(i) + 2) * kBytes);
      EXPECT_EQ(host->status(file.handle, status), 0);
    }
    EXPECT_EQ(host->close(flushed.handle), 0);
    EXPECT_EQ(host->close(file.handle), 0);
    EXPECT_EQ(host->close(log.handle), 0);
    EXPECT_EQ(host->read(file.handle, 0, std::span<std::byte>()).error, EBADF);
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
    return true;
  });
  EXPECT_EQ(client.wait(), 0);
}

TEST(LentFiles, AServerThatDiesBeforeItsDescriptorIsTakenLosesNothing) {
  const ServedDirectory served;
  int times = 0;
  HostOptions options = borrower(served);
  options.at = [&](FaultPoint where) {
    if (where != FaultPoint::lent || ++times > 1) return;
    const pid_t server = served.pid();
    served.kill();
    while (::kill(server, 0) == 0) ::usleep(1000);
  };
  Host host(options);
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  EXPECT_EQ(host.write(file.handle, 5, pattern().bytes(kBytes, 5)).bytes, kBytes);
  EXPECT_EQ(times, 1);
  EXPECT_TRUE(pattern().matches(as_data(content_of(served.root() / "file")).subspan(5), 5));
  EXPECT_TRUE(moves_by_itself(served, host, file.handle)) << "the next server lends";
  EXPECT_EQ(times, 2);
  EXPECT_EQ(served.deaths(), 1);
}

TEST(LentFiles, WhereTheKernelForbidsItDataGoesThroughTheServer) {
  const ServedDirectory served;
  for (const int error : {EPERM, ENOSYS}) {
    Child client([&] {
      refuse_calls({SYS_pidfd_getfd}, error);
      Host host(borrower(served));
      const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
      EXPECT_FALSE(moves_by_itself(served, host, file.handle));
      EXPECT_EQ(host.close(file.handle), 0);
      return !testing::Test::HasFailure();
    });
    EXPECT_EQ(client.wait(), 0);
  }
}

TEST(LentFiles, AServerForReadingLendsForReading) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << std::string(kBytes, 'r');
  const ServedDirectory served({.root = directory.path().string(), .read_only = true});
  Host host(borrower(served));
  const Host::Opened file = host.open("file", kFileOpenRead);
  EXPECT_EQ(read_all(host, file.handle), std::string(kBytes, 'r'));
  EXPECT_EQ(host.write(file.handle, 0, pattern().bytes(1, 0)).error, EBADF);
  EXPECT_EQ(content_of(directory.path() / "file"), std::string(kBytes, 'r'));
}

/// The targets of this process's descriptors.
std::vector<fs::path> descriptors() {
  std::vector<fs::path> found(100);
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::error_code none;
    found[i] = fs::read_symlink("/proc/self/fd/" + std::to_string(i), none);
  }
  return found;
}

TEST(LentFiles, AProgramWithManyFilesHasRoomForItsOwnAndItsStandardOutputIsNoHostsFile) {
  const ServedDirectory served;
  Child client([&] {
    const rlimit few{.rlim_cur = 64, .rlim_max = 64};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return false;
    Host host(borrower(served));
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(number);  // frees the lowest numbers
    for (int i = 0; i < 60; ++i) {
      const std::string name = "file" + std::to_string(i);
      const Host::Opened file = host.open(name, kReadWrite | kFileOpenCreate, 0644);
      if (host.write(file.handle, 0, as_data(name)).bytes != name.size()) return false;
      if (content_of(served.root() / name) != name) return false;
    }
    const auto all = descriptors();
    const auto is_lent = [&](const fs::path& path) { return path.string().starts_with(served.root().string() + "/"); };
    return std::ranges::count_if(all, is_lent) == 16 && std::none_of(all.begin(), all.begin() + 3, is_lent);
  });
  EXPECT_EQ(client.wait(), 0);
}

/// By the time it is taken, a descriptor number may refer to another file, or belong to another process.
TEST(LentFiles, OnlyTheSameFileOpenedTheSameWayIsTaken) {
  const test::TemporaryDirectory directory;
  const auto opened = [&](const char* name, int flags) {
    return UniqueFd(::open((directory.path() / name).c_str(), flags | O_CREAT | O_CLOEXEC, 0600));
  };
  const UniqueFd file = opened("file", O_RDWR);
  const UniqueFd other = opened("other", O_RDWR);
  const UniqueFd reading = opened("file", O_RDONLY);
  const UniqueFd appending = opened("file", O_RDWR | O_APPEND);
  FileStatus status{};
  ASSERT_EQ(status_of(file.get(), status), 0);
  const UniqueFd self = LentFile::process(::getpid());
  const UniqueFd synchronous = opened("file", O_RDWR | O_SYNC);
  const UniqueFd half = opened("file", O_RDWR | O_DSYNC);
  const auto error_of = [&](int owner, const UniqueFd& descriptor, std::uint32_t flags) {
    int error = 0;
    const auto number = static_cast<std::uint64_t>(descriptor.get());
    const bool taken = LentFile::take(owner, number, status, flags, error) != nullptr;
    EXPECT_EQ(taken, error == 0);
    return error;
  };
  EXPECT_EQ(error_of(self.get(), file, kReadWrite), 0);
  EXPECT_EQ(error_of(self.get(), reading, kFileOpenRead), 0);
  EXPECT_EQ(error_of(self.get(), appending, kReadWrite | kFileOpenAppend), 0);
  EXPECT_EQ(error_of(self.get(), other, kReadWrite), ESTALE);
  EXPECT_EQ(error_of(self.get(), reading, kReadWrite), ESTALE);
  EXPECT_EQ(error_of(self.get(), file, kFileOpenRead), ESTALE);
  EXPECT_EQ(error_of(self.get(), appending, kReadWrite), ESTALE);
  EXPECT_EQ(error_of(self.get(), file, kReadWrite | kFileOpenAppend), ESTALE);
  EXPECT_EQ(error_of(self.get(), synchronous, kReadWrite | kFileOpenSync), 0);
  EXPECT_EQ(error_of(self.get(), half, kReadWrite | kFileOpenDataSync), 0);
  EXPECT_EQ(error_of(self.get(), synchronous, kReadWrite | kFileOpenDataSync), ESTALE);
  EXPECT_EQ(error_of(self.get(), half, kReadWrite), ESTALE);
  EXPECT_EQ(error_of(self.get(), file, kReadWrite | kFileOpenSync), ESTALE);
  EXPECT_EQ(error_of(-1, file, kReadWrite), ESRCH);
  EXPECT_FALSE(LentFile::process(0).valid());
  EXPECT_FALSE(LentFile::process(INT64_MAX).valid());
  EXPECT_EQ(error_of(self.get(), UniqueFd(), kReadWrite), ESRCH);
}

}  // namespace
}  // namespace wherry::file
