// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_state.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "file/mount/attempts.hpp"
#include "file/mount/deferred_errors.hpp"
#include "file/mount/kept_descriptors.hpp"
#include "file/mount/layout/kept_descriptors.hpp"
#include "file/mount/layout/kept_state.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"

namespace wherry::file::mount {
namespace {

using layout::KeptWord;

Identity directory(std::uint64_t inode) { return {.device = 1, .inode = inode, .type = S_IFDIR}; }
Identity file(std::uint64_t inode) { return {.device = 1, .inode = inode, .type = S_IFREG}; }

struct KeptStateTest : testing::Test {
  UniqueFd memory = KeptState::make_memory();
};

TEST_F(KeptStateTest, TheNextDaemonFindsFilesUnderTheirNumbersAndNames) {
  NodeId folder = 0;
  NodeId text = 0;
  NodeId last = 0;
  {
    KeptState state(memory);
    Nodes nodes(directory(2), &state);
    folder = nodes.refer(kRootNode, "folder", directory(3));
    text = nodes.refer(folder, "text", file(4));
    nodes.refer(folder, "second", file(4));
    nodes.refer(kRootNode, "gone", file(5));
    nodes.rename(kRootNode, "folder", kRootNode, "moved", false);
    last = nodes.refer(kRootNode, "last", file(6));
    nodes.forget(last, 1);
  }
  KeptState state(memory);
  Nodes nodes(directory(2), &state);
  nodes.restore(state.load());
  EXPECT_EQ(nodes.path(text), "moved/second");
  nodes.remove_name(folder, "second");
  EXPECT_EQ(nodes.path(text), "moved/text");
  EXPECT_EQ(nodes.refer(folder, "text", file(4)), text);
  EXPECT_FALSE(nodes.identity(last));
  EXPECT_GT(nodes.refer(kRootNode, "new", file(7)), last);
  nodes.forget(text, 2);
  EXPECT_TRUE(nodes.path(text));
  nodes.forget(text, 1);
  EXPECT_FALSE(nodes.path(text));
}

TEST_F(KeptStateTest, AnotherVersionsStateIsNotTakenOver) {
  const auto refused = [&](std::uint32_t version) {
    EXPECT_EQ(::pwrite(memory.get(), &version, sizeof version, offsetof(layout::KeptStart, version)),
              static_cast<ssize_t>(sizeof version));
    try {
      const KeptState state(memory);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const std::uint32_t other : {layout::kKeptVersion - 1, layout::kKeptVersion + 1}) {
    EXPECT_EQ(refused(other),
              "take over a mount of another version of Wherry: Protocol error; unmount it, and mount it again");
  }
  EXPECT_EQ(refused(layout::kKeptFull),
            "take over a mount whose state log is full: No space left on device; unmount it, and mount it again");
  EXPECT_EQ(refused(layout::kKeptVersion), "");
}

TEST_F(KeptStateTest, ALogThatHasGrownIsWrittenAnewAndLosesNothing) {
  KeptState state(memory);
  {
    KeptState::Batch batch(&state);
    batch.add_text(KeptWord::directory, "/mnt");
    batch.add(KeptWord::device, 7);
    batch.add_open({.head = {},
                    .number = 3,
                    .node = 9,
                    .request = 1,
                    .device = 0,
                    .file_system = 5,
                    .flags = 2,
                    .mode = 1,
                    .backing = 4,
                    .errors = 0});
    batch.add(KeptWord::begun, 11, 12);
    batch.add_renaming(13, {.flags = 2, .from = "from", .to = "to"});
    batch.add_locker({.head = {}, .number = 1, .node = 9, .owner = 2, .open = 3, .process = 4, .whole = 0});
    batch.add_lock(1, {.offset = 0, .length = 10, .type = 2, .reserved = 0});
  }
  Nodes nodes(directory(2), &state);
  const NodeId node = nodes.refer(kRootNode, "first", file(3));
  constexpr int kMany = 100'000;  // several times the shortest log
  for (int i = 0; i < kMany; ++i) nodes.forget(nodes.refer(kRootNode, "name", file(4)), 1);
  struct stat status{};
  ASSERT_EQ(::fstat(memory.get(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 8 << 20);
  const KeptSnapshot left = KeptState(memory).load();
  EXPECT_EQ(left.text(KeptWord::directory), "/mnt");
  EXPECT_EQ(left.number(KeptWord::device), 7U);
  EXPECT_EQ(left.number(KeptWord::last_open), 3U);
  EXPECT_EQ(left.open.at(3).backing, 4);
  EXPECT_EQ(left.begun.at(11), 12U);
  EXPECT_EQ(left.renaming.at(13).to, "to");
  EXPECT_EQ(left.lockers.at(1).held->all().size(), 1U);
  EXPECT_EQ(left.names.at(kRootNode).at("first").node, node);
  EXPECT_EQ(left.nodes.size(), 1U);
  EXPECT_GE(left.number(KeptWord::last_node), static_cast<std::uint64_t>(kMany));
}

std::int64_t bytes_in(const UniqueFd& memory) {
  struct stat status{};
  EXPECT_EQ(::fstat(memory.get(), &status), 0);
  return status.st_blocks * 512;
}

TEST_F(KeptStateTest, ForgottenFilesGiveTheirMemoryBack) {
  constexpr std::uint64_t kMany = 20'000;
  KeptState state(memory);
  Nodes nodes(directory(2), &state);
  const auto refer = [&](std::uint64_t i) {
    return nodes.refer(kRootNode, "a name of some length " + std::to_string(i), file(i));
  };
  std::vector<NodeId> known;
  for (std::uint64_t i = 3; i < kMany; ++i) known.push_back(refer(i));
  const auto all = bytes_in(memory);
  for (std::uint64_t i = 3; i < kMany; ++i) EXPECT_EQ(refer(i), known[i - 3]);
  EXPECT_LT(bytes_in(memory), all * 3 / 2) << "the same names again";
  for (const NodeId node : known) nodes.forget(node, 2);
  EXPECT_LT(bytes_in(memory), all / 2);
  EXPECT_EQ(KeptState(memory).load().nodes.size(), 0U);
}

constexpr layout::KeptOpen kOpened{.head = {},
                                   .number = 3,
                                   .node = 9,
                                   .request = 1,
                                   .device = 0,
                                   .file_system = 0,
                                   .flags = 2,
                                   .mode = 1,
                                   .backing = 0,
                                   .errors = 0};

TEST_F(KeptStateTest, TheNextDaemonTellsOfErrorsThatThisOneHasNotToldOf) {
  KeptState state(memory);
  KeptState::Batch(&state).add_open(kOpened);
  DeferredErrors errors;
  errors.keep_in(&state, 3);
  errors.note(ENOSPC);
  errors.note_other(EIO);
  DeferredErrors next;
  next.keep_in(&state, 3, state.load().open.at(3).errors);
  EXPECT_EQ(next.take_for_write(), ENOSPC);
  EXPECT_EQ(next.take_for_write(), 0) << "once";
  DeferredErrors third;
  third.keep_in(&state, 3, state.load().open.at(3).errors);
  EXPECT_EQ(third.take_for_write(), 0) << "once";
  EXPECT_EQ(third.take_for_close(), ENOSPC) << "the kernel may have dropped it";
  EXPECT_EQ(third.take_for_close(), ENOSPC) << "that, too";
  EXPECT_EQ(third.take_for_sync(), ENOSPC);
  EXPECT_EQ(third.take_for_sync(), 0) << "once";
  EXPECT_EQ(third.take_for_close(), 0);
  EXPECT_EQ(state.load().open.at(3).errors, 0U);
  third.note_other(EIO);
  EXPECT_EQ(third.take_for_close(), 0);
  EXPECT_EQ(third.take_for_sync(), EIO);
  EXPECT_EQ(state.load().open.at(3).errors, 0U);
}

TEST_F(KeptStateTest, AnErrorIsToldAgainIfTheDaemonIsKilledBeforeItsAnswer) {
  KeptState state(memory);
  KeptState::Batch(&state).add_open(kOpened);
  Attempts attempts(&state);
  const auto left = [&] { return state.load().open.at(3).errors; };
  DeferredErrors errors;
  errors.keep_in(&state, 3);
  const auto told_by = [&](int (DeferredErrors::*take)(), int error) {
    served_request() = {.number = 5};
    EXPECT_EQ((errors.*take)(), error);
    DeferredErrors next;
    next.keep_in(nullptr, 3, left());
    EXPECT_EQ((next.*take)(), error);
    attempts.end();
  };
  errors.note(ENOSPC);
  told_by(&DeferredErrors::take_for_write, ENOSPC);
  EXPECT_EQ(left(), ENOSPC | layout::kKeptErrorReported);
  told_by(&DeferredErrors::take_for_close, ENOSPC);
  told_by(&DeferredErrors::take_for_sync, ENOSPC);
  EXPECT_EQ(left(), 0U);
  errors.note(ENOSPC);
  served_request() = {.number = 6};
  EXPECT_EQ(errors.take_for_sync(), ENOSPC);
  errors.note(EIO);
  EXPECT_EQ(left(), static_cast<std::uint32_t>(ENOSPC));
  attempts.end();
  EXPECT_EQ(left(), static_cast<std::uint32_t>(EIO)) << "one that came meanwhile";
}

/// A file that is renamed back and forth has one of two names, at whatever instruction the process is killed.
TEST_F(KeptStateTest, AKillAtAnyInstructionLeavesAWholeState) {
  constexpr int kKills = 10;
  for (int kill = 0; kill < kKills; ++kill) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      KeptState state(memory);
      Nodes nodes(directory(2), &state);
      nodes.restore(state.load());
      if (kill == 0) nodes.refer(kRootNode, "one", file(3));
      if (nodes.path(2) == "other") nodes.rename(kRootNode, "other", kRootNode, "one", false);
      if (::write(ends[1], "", 1) != 1) ::_exit(1);
      while (true) {
        nodes.rename(kRootNode, "one", kRootNode, "other", false);
        nodes.rename(kRootNode, "other", kRootNode, "one", false);
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(ends[0], &byte, 1), 1);
    ::usleep(static_cast<useconds_t>(kill * 633));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    const KeptSnapshot left = KeptState(memory).load();
    ASSERT_EQ(left.nodes.size(), 1U);
    ASSERT_EQ(left.names.size(), 1U);
    const auto& names = left.names.at(kRootNode);
    ASSERT_EQ(names.size(), 1U);
    ASSERT_TRUE(names.contains("one") || names.contains("other"));
  }
}

TEST(KeptDescriptorsTest, WhatIsKeptIsThereForTheNextOne) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd supervisor(ends[0]);
  const UniqueFd memory(::memfd_create("test", MFD_CLOEXEC));
  const KeptKey key{.kind = KeptKind::memory, .id = 5};
  const auto send = [&](layout::KeeperWord word, int descriptor) {
    return KeeperSocket::send(supervisor.get(), static_cast<std::uint32_t>(word), key, descriptor);
  };
  ASSERT_TRUE(send(layout::KeeperWord::keep, memory.get()) && send(layout::KeeperWord::all, -1));
  KeptDescriptors kept{UniqueFd(ends[1])};
  EXPECT_FALSE(kept.has({.kind = KeptKind::device}));
  const UniqueFd taken = kept.take(key);
  struct stat one{};
  struct stat other{};
  ASSERT_TRUE(::fstat(memory.get(), &one) == 0 && ::fstat(taken.get(), &other) == 0);
  EXPECT_EQ(one.st_ino, other.st_ino);
  ASSERT_TRUE(kept.keep({.kind = KeptKind::file, .id = 6}, taken.get()));
  const KeeperSocket::Received received = KeeperSocket::receive(supervisor.get(), true);
  EXPECT_EQ(received.key, (KeptKey{.kind = KeptKind::file, .id = 6}));
  EXPECT_TRUE(received.descriptor.valid());
  EXPECT_EQ(KeeperSocket::receive(supervisor.get(), false).word, 0U);
}

}  // namespace
}  // namespace wherry::file::mount
