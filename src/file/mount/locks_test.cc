// SPDX-License-Identifier: Apache-2.0
// Lock owners, by the kernel's numbers.
#include "file/mount/locks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/unique_fd.hpp"
#include "file/mount/file_system.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

using layout::FileLockType;

/// Whether the server lends its descriptors.
struct LocksTest : testing::TestWithParam<bool> {
  LocksTest() {
    std::ofstream(served.root() / "file") << "content";
    Entry entry;
    EXPECT_EQ(system.names().look_up(kRootNode, "file", entry), 0);
    node = entry.node;
  }
  OpenFile* open(int flags = O_RDWR) {
    OpenFile* file = nullptr;
    EXPECT_EQ(system.files().open(node, flags, file), 0);
    return file;
  }
  int lock(std::uint64_t owner, OpenFile* by, bool whole, FileLockType type = FileLockType::write,
           std::uint64_t offset = 0, std::uint64_t length = 0) {
    return system.locks().set(
        node, *by,
        {.owner = owner,
         .whole = whole,
         .lock = {.offset = offset, .length = length, .type = static_cast<std::uint32_t>(type), .reserved = 0},
         .process = static_cast<pid_t>(owner)});
  }

  static HostOptions options(const ServedDirectory& served) {
    HostOptions options = served.client();
    options.borrows = GetParam();
    return options;
  }

  ServedDirectory served;
  FileSystem system{options(served), 3, WriteBuffer::make(0)};
  NodeId node = 0;
};

TEST_P(LocksTest, AnOwnerThatIsAProcessHasOneSetOfLocksByAllItsOpenFiles) {
  OpenFile* const one = open(O_RDONLY);
  OpenFile* const two = open();
  OpenFile* const other = open();
  EXPECT_EQ(lock(1, one, false, FileLockType::read, 0, 10), 0);
  EXPECT_EQ(lock(1, two, false, FileLockType::write, 0, 10), 0);
  EXPECT_EQ(lock(2, other, false, FileLockType::read, 0, 10), EAGAIN);
  EXPECT_EQ(lock(1, one, false, FileLockType::none, 0, 5), 0);
  EXPECT_EQ(lock(2, other, false, FileLockType::write, 0, 5), 0);
  system.locks().drop(node, 1);
  EXPECT_EQ(lock(2, other, false), 0);
  for (OpenFile* const file : {one, two, other}) system.files().close(node, file);
}

TEST_P(LocksTest, ANumberThatIsGivenToTheNextOpenFileLosesNoLockWhenTheFirstIsReleasedLate) {
  for (const bool whole : {true, false}) {
    OpenFile* const first = open();
    OpenFile* const next = open();
    OpenFile* const other = open();
    EXPECT_EQ(lock(1, first, whole), 0);
    EXPECT_EQ(lock(1, next, whole), 0);
    system.files().close(node, first);
    EXPECT_EQ(lock(2, other, whole), EAGAIN);
    system.files().close(node, next);
    EXPECT_EQ(lock(2, other, whole), 0);
    system.files().close(node, other);
  }
}

TEST_P(LocksTest, TheProcessThatIsInTheWayIsNamed) {
  OpenFile* const one = open();
  OpenFile* const two = open();
  EXPECT_EQ(lock(1, one, true), 0);
  EXPECT_EQ(lock(3, one, false, FileLockType::read, 0, 10), 0);
  EXPECT_EQ(lock(4, one, false, FileLockType::read, 10, 10), 0);
  LockRequest asked{
      .owner = 2,
      .lock = {.offset = 12, .length = 0, .type = static_cast<std::uint32_t>(FileLockType::write), .reserved = 0}};
  EXPECT_EQ(system.locks().get(node, *two, asked), 0);
  EXPECT_EQ(asked.process, 4);
  EXPECT_EQ(asked.lock.offset, 10U);
  for (OpenFile* const file : {one, two}) system.files().close(node, file);
}

using LocksOfAServer = LocksTest;
TEST_P(LocksOfAServer, AfterAServerWasStartedAgainAnOwnerWithoutLocksLocksAnewAndOneWithLocksDoesNot) {
  OpenFile* const one = open();
  OpenFile* const two = open();
  EXPECT_EQ(lock(1, one, false, FileLockType::write, 0, 10), 0);
  EXPECT_EQ(lock(2, two, false, FileLockType::write, 10, 10), 0);
  EXPECT_EQ(lock(2, two, false, FileLockType::none), 0);
  served.kill();
  EXPECT_EQ(lock(2, two, false), 0);
  EXPECT_EQ(lock(1, one, false, FileLockType::write, 0, 10), ESTALE);
  EXPECT_EQ(lock(1, two, false, FileLockType::write, 0, 10), ESTALE);
  system.locks().drop(node, 1);
  EXPECT_EQ(lock(1, one, false), ESTALE);
  system.locks().drop(node, 2);
  OpenFile* const again = open();
  EXPECT_EQ(lock(1, again, false), 0);
  for (OpenFile* const file : {one, two, again}) system.files().close(node, file);
}

TEST_P(LocksTest, ACircleOfOwnersThatWaitIsFound) {
  OpenFile* const file = open();
  const auto wait = [&](int id, std::uint64_t owner, std::uint64_t offset, FileLockType type = FileLockType::write) {
    static std::array<int, 8> ids{};
    return system.locks().locks().begin_wait(
        &ids.at(static_cast<std::size_t>(id)), node,
        {.owner = owner,
         .lock = {.offset = offset, .length = 10, .type = static_cast<std::uint32_t>(type), .reserved = 0}});
  };
  for (std::uint64_t owner = 1; owner <= 3; ++owner)
    EXPECT_EQ(lock(owner, file, false, FileLockType::write, 10 * owner, 10), 0);
  EXPECT_EQ(wait(0, 1, 20), 0);
  EXPECT_EQ(wait(1, 2, 30), 0);
  EXPECT_EQ(wait(2, 4, 10), 0) << "none waits for this one";
  EXPECT_EQ(wait(3, 3, 40), 0) << "nobody is in the way";
  EXPECT_EQ(wait(4, 3, 11, FileLockType::read), EDEADLK);
  EXPECT_EQ(lock(2, file, false, FileLockType::none, 20, 10), 0);
  EXPECT_EQ(wait(4, 3, 10), 0);
  system.files().close(node, file);
}

using LocksOfFilesThatAreLent = LocksTest;
TEST_P(LocksOfFilesThatAreLent, DoNotEndWithTheServer) {
  OpenFile* const one = open();
  OpenFile* const two = open();
  EXPECT_EQ(lock(1, one, false, FileLockType::write, 0, 10), 0);
  EXPECT_EQ(lock(3, one, true), 0);
  served.kill();
  EXPECT_EQ(lock(2, two, false), EAGAIN);
  EXPECT_EQ(lock(4, two, true), EAGAIN);
  EXPECT_EQ(lock(1, one, false, FileLockType::none), 0);
  EXPECT_EQ(lock(2, two, false), 0);
  EXPECT_EQ(lock(4, two, true), EAGAIN);
  const auto lock_at_host = [&] {
    const UniqueFd native(::open((served.root() / "file").c_str(), O_RDWR | O_CLOEXEC));
    return ::flock(native.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  };
  EXPECT_EQ(lock_at_host(), EAGAIN);
  for (OpenFile* const file : {one, two}) system.files().close(node, file);
  EXPECT_EQ(lock_at_host(), 0);
}

constexpr auto kName = [](const auto& lent) { return lent.param ? "Lent" : "ThroughTheServer"; };
INSTANTIATE_TEST_SUITE_P(Both, LocksTest, testing::Bool(), kName);
INSTANTIATE_TEST_SUITE_P(Files, LocksOfAServer, testing::Values(false), kName);
INSTANTIATE_TEST_SUITE_P(Files, LocksOfFilesThatAreLent, testing::Values(true), kName);

}  // namespace
}  // namespace wherry::file::mount
