// SPDX-License-Identifier: Apache-2.0
// Locks of clients exclude each other and the programs of the host, and end with the handle that they belong to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;
using namespace std::chrono_literals;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;

FileLock lock_of(FileLockType type, std::uint64_t offset = 0, std::uint64_t length = 0) {
  return {.offset = offset, .length = length, .type = static_cast<std::uint32_t>(type), .reserved = 0};
}

const FileLock kWriteAll = lock_of(FileLockType::write);
const FileLock kNone = lock_of(FileLockType::none);

class FileLocks : public ::testing::Test {
 protected:
  FileLocks() { std::ofstream(served_.root() / "file") << "content"; }

  static Host::Handle open(Host& host, std::uint32_t flags = kReadWrite) {
    const Host::Opened opened = host.open("file", flags);
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }
  static Host::Handle owner(Host& host, Host::Handle file, std::uint32_t flags = 0) {
    const HostLocks::Opened opened = host.locks().open(file, flags, std::make_shared<HeldLocks>());
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }
  /// Retries until the server has noticed the end of the old owner and given up its lock.
  static void expect_free(Host& host, Host::Handle owner, std::uint32_t flags = 0) {
    int error = EAGAIN;
    while ((error = host.locks().set(owner, flags, kWriteAll)) == EAGAIN) std::this_thread::yield();
    EXPECT_EQ(error, 0);
  }
  [[nodiscard]] UniqueFd native() const {
    return UniqueFd(::open((served_.root() / "file").c_str(), O_RDWR | O_CLOEXEC));
  }

  ServedDirectory served_;
  Host one_{served_.client()};
  Host other_{served_.client()};
};

TEST_F(FileLocks, OwnersOfOneClientAndOfTwoExcludeEachOther) {
  for (const std::uint32_t flags : {0U, kFileLockWhole}) {
    const Host::Handle file = open(one_);
    const Host::Handle first = owner(one_, file, flags);
    const Host::Handle second = owner(one_, file, flags);
    const Host::Handle far = owner(other_, open(other_), flags);
    EXPECT_EQ(one_.locks().set(first, flags, kWriteAll), 0);
    EXPECT_EQ(one_.locks().set(second, flags, lock_of(FileLockType::read)), EAGAIN);
    EXPECT_EQ(other_.locks().set(far, flags, lock_of(FileLockType::read)), EAGAIN);
    EXPECT_EQ(one_.locks().set(first, flags, lock_of(FileLockType::read)), 0);
    EXPECT_EQ(other_.locks().set(far, flags, lock_of(FileLockType::read)), 0);
    EXPECT_EQ(one_.locks().set(first, flags, kWriteAll), EAGAIN);
    EXPECT_EQ(other_.locks().set(far, flags, kNone), 0);
    EXPECT_EQ(one_.close(first), 0);
    EXPECT_EQ(one_.locks().set(second, flags, kWriteAll), 0);
    EXPECT_EQ(one_.close(second), 0);
  }
}

TEST_F(FileLocks, ProgramsOfTheHostAreExcluded) {
  const UniqueFd native = this->native();
  EXPECT_EQ(one_.locks().set(owner(one_, open(one_)), 0, lock_of(FileLockType::write, 10, 5)), 0);
  EXPECT_EQ(one_.locks().set(owner(one_, open(one_), kFileLockWhole), kFileLockWhole, kWriteAll), 0);
  struct flock range{};
  range.l_type = F_WRLCK;
  EXPECT_EQ(::fcntl(native.get(), F_SETLK, &range), -1);
  EXPECT_EQ(::flock(native.get(), LOCK_SH | LOCK_NB), -1);
  range.l_len = 10;
  EXPECT_EQ(::fcntl(native.get(), F_SETLK, &range), 0);
}

TEST_F(FileLocks, WhatIsInTheWayIsTold) {
  const Host::Handle file = open(one_);
  const Host::Handle holder = owner(one_, file);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, 5, 10)), 0);
  FileLock lock = kWriteAll;
  EXPECT_EQ(one_.locks().get(file, lock), 0);
  EXPECT_EQ(lock.offset, 5U);
  EXPECT_EQ(lock.length, 10U);
  EXPECT_EQ(lock.type, static_cast<std::uint32_t>(FileLockType::read));
  lock = kWriteAll;
  EXPECT_EQ(one_.locks().get(holder, lock), 0);
  EXPECT_EQ(lock.type, static_cast<std::uint32_t>(FileLockType::none));
}

TEST_F(FileLocks, EndWithTheConnectionAndNotWithTheFile) {
  const Host::Handle waiting = owner(other_, open(other_));
  {
    Host client(served_.client());
    const Host::Handle file = open(client);
    EXPECT_EQ(client.locks().set(owner(client, file), 0, kWriteAll), 0);
    EXPECT_EQ(client.close(file), 0);
    EXPECT_EQ(other_.locks().set(waiting, 0, kWriteAll), EAGAIN);
  }
  expect_free(other_, waiting);
}

TEST_F(FileLocks, AnOwnerOfAFileThatIsOpenForReadingOnlyMayHaveWriteLocks) {
  EXPECT_EQ(one_.locks().set(owner(one_, open(one_, kFileOpenRead)), 0, kWriteAll), 0);
  EXPECT_EQ(other_.locks().set(owner(other_, open(other_, kFileOpenWrite)), 0, lock_of(FileLockType::read)), EAGAIN);
}

TEST_F(FileLocks, AFileThatIsOpenForReadingOnlyIsNotOpenedForWriting) {
  const std::filesystem::path program = served_.root() / "program";
  std::filesystem::copy_file("/bin/true", program);
  const Host::Handle file = one_.open("program", kFileOpenRead).handle;
  EXPECT_EQ(one_.locks().set(owner(one_, file), 0, lock_of(FileLockType::read)), 0);
  EXPECT_EQ(one_.locks().set(owner(one_, file, kFileLockWhole), kFileLockWhole, kWriteAll), 0);
  std::string name = program;
  std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t child = -1;
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(FileLocks, AnOwnerOfReadLocksKeepsThemWhenItAsksForAWriteLock) {
  const Host::Handle holder = owner(one_, open(one_, kFileOpenRead));
  const Host::Handle far = owner(other_, open(other_));
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, 0, 10)), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, 100)), 0);
  EXPECT_EQ(other_.locks().set(far, 0, lock_of(FileLockType::read, 5, 1)), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::write, 0, 10)), EAGAIN);
  for (const std::uint64_t offset : {0, 9, 100, 1'000'000})
    EXPECT_EQ(other_.locks().set(far, 0, lock_of(FileLockType::write, offset, 1)), EAGAIN) << offset;
  EXPECT_EQ(other_.locks().set(far, 0, lock_of(FileLockType::write, 10, 90)), 0);
  EXPECT_EQ(other_.locks().set(far, 0, kNone), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::write, 0, 10)), 0);
  EXPECT_EQ(other_.locks().set(far, 0, lock_of(FileLockType::read, 100, 1)), 0);
  EXPECT_EQ(other_.locks().set(far, 0, lock_of(FileLockType::read, 0, 1)), EAGAIN);
}

TEST_F(FileLocks, AnOwnerHasABoundOfRangesAndGoesOnBelowIt) {
  constexpr std::uint64_t kMostRanges = 65536;
  const Host::Handle holder = owner(one_, open(one_));
  EXPECT_EQ(one_.locks().set(holder, 0, kWriteAll), 0);
  for (std::uint64_t i = kMostRanges - 1; i > 0; --i)
    ASSERT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::none, 4 * i, 1)), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::none, 2, 1)), ENOLCK);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, 2, 1)), ENOLCK);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::none, 0, 4)), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, 1, 1)), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, kNone), 0);
  EXPECT_EQ(one_.locks().set(holder, 0, kWriteAll), 0);
}

TEST_F(FileLocks, ALockThatWasLostWithTheServerMakesTheFileStale) {
  const Host::Handle file = open(one_);
  const Host::Handle holder = owner(one_, file);
  const Host::Handle unlocked = open(one_);
  const Host::Handle idle = owner(one_, unlocked);
  EXPECT_EQ(one_.locks().set(holder, 0, kWriteAll), 0);
  served_.kill();
  std::array<std::byte, 1> byte{std::byte{'x'}};
  EXPECT_EQ(one_.write(file, 0, byte).error, ESTALE);
  EXPECT_EQ(one_.locks().set(holder, 0, kWriteAll), ESTALE);
  EXPECT_EQ(one_.locks().set(holder, 0, kNone), ESTALE);
  EXPECT_EQ(one_.locks().set(idle, 0, kWriteAll), ESTALE);
  EXPECT_EQ(one_.read(unlocked, 0, byte).bytes, 1U);
  EXPECT_EQ(one_.locks().set(owner(one_, unlocked), 0, kWriteAll), 0);
  EXPECT_EQ(content_of(served_.root() / "file"), "content");
}

TEST_F(FileLocks, AFileThatWasLockedIsNotWrittenByALentDescriptorOnceTheServerIsGone) {
  HostOptions options = served_.client();
  options.borrows = true;
  Host client(options);
  const Host::Handle file = open(client);
  std::array<std::byte, 1> byte{std::byte{'x'}};
  EXPECT_EQ(client.read(file, 0, byte).bytes, 1U);
  EXPECT_EQ(client.locks().set(owner(client, file), 0, kWriteAll), 0);
  served_.kill();
  EXPECT_EQ(client.write(file, 0, byte).error, ESTALE);
  EXPECT_EQ(content_of(served_.root() / "file"), "content");
}

TEST_F(FileLocks, AFlockThatCannotBeUpgradedIsGivenUp) {
  const auto held = std::make_shared<HeldLocks>();
  const Host::Handle one = one_.locks().open(open(one_), kFileLockWhole, held).handle;
  const Host::Handle other = owner(other_, open(other_), kFileLockWhole);
  EXPECT_EQ(one_.locks().set(one, kFileLockWhole, lock_of(FileLockType::read)), 0);
  EXPECT_EQ(other_.locks().set(other, kFileLockWhole, lock_of(FileLockType::read)), 0);
  EXPECT_TRUE(held->any());
  EXPECT_EQ(one_.locks().set(one, kFileLockWhole, kWriteAll), EAGAIN);
  EXPECT_FALSE(held->any());
  EXPECT_EQ(other_.locks().set(other, kFileLockWhole, kWriteAll), 0);
}

TEST_F(FileLocks, AnOwnerServesNoOtherCall) {
  const Host::Handle file = open(one_);
  const Host::Handle holder = owner(one_, file);
  std::array<std::byte, 1> byte{std::byte{'x'}};
  EXPECT_EQ(one_.write(holder, 0, byte).error, EBADF);
  EXPECT_EQ(one_.read(holder, 0, byte).error, EBADF);
  EXPECT_EQ(one_.set_size(holder, 0), EBADF);
  EXPECT_EQ(one_.locks().open(holder, 0, std::make_shared<HeldLocks>()).error, EBADF);
  EXPECT_EQ(one_.locks().set(file, 0, kWriteAll), EBADF);
  EXPECT_EQ(content_of(served_.root() / "file"), "content");
}

TEST_F(FileLocks, WhatMakesNoSenseIsRefused) {
  const Host::Handle file = open(one_);
  const Host::Handle holder = owner(one_, file);
  EXPECT_EQ(one_.locks().open(file, 2, std::make_shared<HeldLocks>()).error, EINVAL);
  EXPECT_EQ(one_.locks().set(holder, 8, kWriteAll), EINVAL);
  for (FileLock lock : {lock_of(FileLockType{3}), lock_of(FileLockType::read, std::uint64_t{1} << 63),
                        lock_of(FileLockType::read, 0, std::uint64_t{1} << 63)}) {
    EXPECT_EQ(one_.locks().set(holder, 0, lock), EINVAL);
    EXPECT_EQ(one_.locks().get(holder, lock), EINVAL);
  }
  EXPECT_EQ(one_.locks().set(holder, 0, lock_of(FileLockType::read, INT64_MAX, 2)), EOVERFLOW);
}

TEST(FileLocksLimit, OwnersCountAsOpenFiles) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 160, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const ServedDirectory served;  // inherits the limit: 20 files per client
  ::setrlimit(RLIMIT_NOFILE, &before);
  std::ofstream(served.root() / "file") << "content";
  Host host(served.client());
  const Host::Handle file = host.open("file", kFileOpenRead).handle;
  int owners = 0;
  int error = 0;
  while ((error = host.locks().open(file, 0, std::make_shared<HeldLocks>()).error) == 0) ++owners;
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(owners, 19);
}

/// Answers `get_lock` with an invalid lock.
bool answer_wrongly(std::atomic<int>& port, const FileLock& found) {
  Listener listener = listen("wherry+shm://*:*");
  port = listener.local().port.value_or(0);
  while (true) {
    Stream stream = listener.accept();
    FileHello hello{};
    FileRequest request{};
    if (!stream.receive_all(std::as_writable_bytes(std::span(&hello, 1))).ok()) continue;
    stream.send(std::as_bytes(std::span(&hello, 1)));
    while (stream.receive_all(std::as_writable_bytes(std::span(&request, 1))).ok()) {
      std::vector<std::byte> name(request.name_bytes);
      if (!name.empty() && !stream.receive_all(name).ok()) break;
      const bool opens = request.call == static_cast<std::uint32_t>(FileCall::open);
      const auto bytes = opens ? std::span<const std::byte>() : std::as_bytes(std::span(&found, 1));
      const std::size_t payload = opens ? sizeof(FileStatus) : bytes.size();
      const FileAnswer answer{.id = request.id,
                              .last = 1,
                              .error = 0,
                              .payload_bytes = static_cast<std::uint32_t>(payload),
                              .value = 1,
                              .position = 0};
      stream.send(std::as_bytes(std::span(&answer, 1)));
      stream.send(opens ? std::vector<std::byte>(payload) : std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
  }
}

TEST(HostileServerOfLocks, RangesThatNoFileHasAreNotBelieved) {
  constexpr std::uint64_t kTooFar = std::uint64_t{1} << 63;
  for (const FileLock& found : {lock_of(FileLockType{3}), lock_of(FileLockType::read, kTooFar),
                                lock_of(FileLockType::read, 0, kTooFar), lock_of(FileLockType::read, 2, INT64_MAX)}) {
    const SharedValue<std::atomic<int>> port;
    const Child server([&] { return answer_wrongly(*port, found); });
    while (*port == 0) std::this_thread::yield();
    Host host({.address = "wherry+shm://0:" + std::to_string(*port), .timeout = 30ms, .borrows = false});
    const Host::Opened opened = host.open("file", kFileOpenRead);
    ASSERT_EQ(opened.error, 0);
    FileLock lock = kWriteAll;
    EXPECT_EQ(host.locks().get(opened.handle, lock), EIO);
  }
}

/// Clients whose owners of locks are processes with numbers.
class FileLockWaits : public FileLocks {
 protected:
  HostOptions as(std::uint64_t client) const {
    HostOptions options = served_.client();
    options.process = {.client = client, .number = 1};
    return options;
  }
  static Host::Handle process(Host& host, Host::Handle file, std::uint64_t number) {
    return host.locks().open(file, 0, std::make_shared<HeldLocks>(), number).handle;
  }

  Host first_{as(1)};
  Host second_{as(2)};
};

TEST_F(FileLockWaits, AProcessThatWouldWaitForItselfByWayOfAnotherClientIsTold) {
  std::ofstream(served_.root() / "other") << "content";
  const Host::Handle file = open(first_);
  const Host::Handle other = first_.open("other", kReadWrite).handle;
  const Host::Handle one = process(first_, file, 7);
  const Host::Handle one_on_other = process(first_, other, 7);
  const Host::Handle two = process(second_, open(second_), 7);
  const Host::Handle two_on_other = process(second_, second_.open("other", kReadWrite).handle, 7);
  EXPECT_EQ(first_.locks().set(one, 0, kWriteAll), 0);
  EXPECT_EQ(second_.locks().set(two_on_other, 0, kWriteAll), 0);
  EXPECT_EQ(first_.locks().set(one_on_other, kFileLockWaits, kWriteAll), EAGAIN);
  EXPECT_EQ(second_.locks().set(two, 0, kWriteAll), EAGAIN) << "does not wait";
  EXPECT_EQ(second_.locks().set(two, kFileLockWaits, kWriteAll), EDEADLK);
  EXPECT_EQ(first_.locks().set(one_on_other, kFileLockWaits, kWriteAll), EAGAIN) << "the other one was told";
  EXPECT_EQ(first_.locks().set(one_on_other, kFileLockGivesUp, kWriteAll), 0);
  EXPECT_EQ(second_.locks().set(two, kFileLockWaits, kWriteAll), EAGAIN);
  EXPECT_EQ(second_.locks().set(two_on_other, 0, kNone), 0);
  EXPECT_EQ(first_.locks().set(one_on_other, kFileLockWaits, kWriteAll), 0);
  EXPECT_EQ(first_.locks().set(one, 0, kNone), 0);
  EXPECT_EQ(second_.locks().set(two, kFileLockWaits, kWriteAll), 0);
}

TEST_F(FileLockWaits, WaitsEndWithTheClient) {
  const FileLock low = lock_of(FileLockType::write, 0, 10);
  const FileLock high = lock_of(FileLockType::write, 10, 10);
  const Host::Handle two = process(second_, open(second_), 1);
  EXPECT_EQ(second_.locks().set(two, 0, low), 0);
  {
    Host third(as(3));
    const Host::Handle file = open(third);
    EXPECT_EQ(third.locks().set(process(third, file, 1), kFileLockWaits, low), EAGAIN);
    EXPECT_EQ(third.locks().set(process(third, file, 2), 0, high), 0);
  }
  int error = EAGAIN;
  while ((error = second_.locks().set(two, kFileLockWaits, high)) == EAGAIN) std::this_thread::yield();
  EXPECT_EQ(error, 0);
}

TEST_F(FileLockWaits, FlagsThatDoNotFitTheOwnerAreRefused) {
  const Host::Handle whole = owner(first_, open(first_), kFileLockWhole);
  const Host::Handle range = owner(first_, open(first_));
  for (const std::uint32_t flags : {kFileLockWaits, kFileLockGivesUp, kFileLockWhole | kFileLockWaits, 8U})
    EXPECT_EQ(first_.locks().set(whole, flags, kWriteAll), EINVAL) << flags;
  for (const std::uint32_t flags : {kFileLockWhole, kFileLockWaits | kFileLockGivesUp, 8U})
    EXPECT_EQ(first_.locks().set(range, flags, kWriteAll), EINVAL) << flags;
}

}  // namespace
}  // namespace wherry::file
