// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/process_memory.hpp"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/child_process.hpp"

namespace wherry::fabric::shm {
namespace {

/// A process that shows itself and waits to be killed.
class Peer {
 public:
  Peer() {
    while (*shown_ == 0) std::this_thread::yield();
  }
  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  [[nodiscard]] layout::Recognition shown() const { return {.address = *address_, .number = *shown_}; }
  void die() {
    child_.kill();
    child_.wait();
  }

 private:
  SharedValue<std::atomic<std::uint64_t>> address_;
  SharedValue<std::atomic<std::uint64_t>> shown_;
  Child child_{[this] {
    const layout::Recognition own = recognition();
    *address_ = own.address;
    *shown_ = own.number;
    while (true) ::pause();
    return true;
  }};
};

class PrivateMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::uint64_t from = 1, to = 0;
    const iovec here{&to, sizeof to}, there{&from, sizeof from};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != sizeof to) GTEST_SKIP() << "the kernel refuses";
    (void)recognition();
  }
};

TEST_F(PrivateMemoryTest, AProcessIsRecognisedByWhatItShows) {
  ShmPrivateMemory own(::getpid(), recognition());
  EXPECT_TRUE(own.reachable());
  EXPECT_TRUE(own.recognise());
  std::vector<std::byte> from(100'000, std::byte{7}), to(from.size());
  const auto address = [](const auto& bytes) { return reinterpret_cast<std::uint64_t>(bytes.data()); };
  EXPECT_EQ(own.read(to, address(from)), to.size());
  EXPECT_EQ(to, from);
  from.assign(from.size(), std::byte{8});
  EXPECT_EQ(own.write(address(to), from), from.size());
  EXPECT_EQ(to, from);
}

TEST_F(PrivateMemoryTest, WhatIsNotThereIsNotReached) {
  ShmPrivateMemory own(::getpid(), recognition());
  std::vector<std::byte> bytes(100);
  EXPECT_EQ(own.read(bytes, 1), 0U);
  EXPECT_EQ(own.write(1, bytes), 0U);
}

TEST_F(PrivateMemoryTest, AnotherNumberOrAnotherAddressIsNotRecognised) {
  const layout::Recognition shown = recognition();
  const std::uint64_t elsewhere = 12345;
  for (const layout::Recognition& wrong :
       {layout::Recognition{shown.address, shown.number + 1}, layout::Recognition{shown.address, 0},
        layout::Recognition{shown.address + 8, shown.number}, layout::Recognition{8, shown.number},
        layout::Recognition{shown.address + 8, 0},
        layout::Recognition{reinterpret_cast<std::uint64_t>(&elsewhere), shown.number}}) {
    ShmPrivateMemory memory(::getpid(), wrong);
    EXPECT_FALSE(memory.reachable());
    EXPECT_FALSE(memory.recognise());
  }
}

TEST_F(PrivateMemoryTest, AProcessOfAnotherNumberIsNotRecognised) {
  for (const pid_t pid : {0, -1, 1 << 30, ::getppid()}) {
    ShmPrivateMemory memory(pid, recognition());
    EXPECT_FALSE(memory.reachable()) << pid;
  }
}

TEST_F(PrivateMemoryTest, AForkedChildIsNotTakenForItsParentNorTheParentForIt) {
  const Peer child;
  ASSERT_NE(child.shown().number, recognition().number);
  ShmPrivateMemory parents(child.pid(), recognition());
  EXPECT_FALSE(parents.reachable()) << "who shows the parent's number, and has the child's";
  ShmPrivateMemory childs(::getpid(), child.shown());
  EXPECT_FALSE(childs.reachable()) << "who shows the child's number, and has the parent's";
}

TEST_F(PrivateMemoryTest, AForkedChildDoesNotUseItsParentsWay) {
  ShmPrivateMemory own(::getpid(), recognition());
  ASSERT_TRUE(own.reachable());
  Child child([&] {
    const bool before = own.reachable();
    (void)recognition();
    return !before && !own.reachable();
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(own.reachable());
}

TEST_F(PrivateMemoryTest, TheDeadAreNotRecognisedForGood) {
  Peer peer;
  ShmPrivateMemory memory(peer.pid(), peer.shown());
  if (!memory.reachable()) GTEST_SKIP() << "the kernel refuses to reach a child";
  peer.die();
  EXPECT_FALSE(memory.recognise());
  EXPECT_FALSE(memory.reachable());
}

}  // namespace
}  // namespace wherry::fabric::shm
