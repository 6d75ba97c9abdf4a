// SPDX-License-Identifier: Apache-2.0
// Every call that begins after a write was acknowledged sees that write, whatever other threads do.
#include "file/mount/write_behind.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mount/kept_file.hpp"
#include "file/wire/status.hpp"
#include "tests/common/kept_writes.hpp"
#include "tests/common/recall_watcher.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

TEST_F(KeptWrites, EveryLookSeesWhatWasAcknowledgedBefore) {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  const auto repeat = [&](auto look) {
    threads.emplace_back([&, look] {
      while (!over) look(acknowledged.load());
    });
  };
  repeat([&](std::uint64_t size) {
    struct stat found{};
    EXPECT_EQ(system_.attributes().get(entry_.node, found), 0);
    EXPECT_GE(static_cast<std::uint64_t>(found.st_size), size);
  });
  repeat([&](std::uint64_t size) {
    Entry again;
    EXPECT_EQ(system_.names().look_up(kRootNode, "file", again), 0);
    EXPECT_GE(static_cast<std::uint64_t>(again.attributes.st_size), size);
    system_.tree().nodes().forget(again.node, 1);
  });
  repeat([&](std::uint64_t size) {
    if (size < 8) return;
    std::string last(8, '\0');
    const Result got = system_.files().read(entry_.node, *file_, size - 8, std::as_writable_bytes(std::span(last)));
    EXPECT_EQ(got.bytes, 8U) << got;
    EXPECT_EQ(last, "12345678");
  });
  repeat([&](std::uint64_t size) {
    const UniqueFd native(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_GE(static_cast<std::uint64_t>(::lseek(native.get(), 0, SEEK_END)), size);
    std::this_thread::sleep_for(10ms);
  });
  for (int i = 0; i < 20'000; ++i) {
    write(acknowledged, "12345678");
    acknowledged += 8;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(system_.files().flush(entry_.node, *file_), 0);
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += "12345678";
  EXPECT_EQ(content_of(path()), all);
}

TEST_F(KeptWrites, ALookSeesTheKeptWriteBeforeIt) {
  std::uint64_t size = write_until_kept(0);
  for (int i = 0; i < 60; ++i) {
    write(size, "12345678");
    size += 8;
    ASSERT_TRUE(system_.tree().write_behind().keeps(entry_.node));
    struct stat found{};
    Entry again;
    std::string last(8, '\0');
    switch (i % 3) {
      case 0:
        EXPECT_EQ(system_.attributes().get(entry_.node, found), 0);
        EXPECT_EQ(static_cast<std::uint64_t>(found.st_size), size);
        break;
      case 1:
        EXPECT_EQ(system_.names().look_up(kRootNode, "file", again), 0);
        EXPECT_EQ(static_cast<std::uint64_t>(again.attributes.st_size), size);
        system_.tree().nodes().forget(again.node, 1);
        break;
      default:
        EXPECT_EQ(system_.files().read(entry_.node, *file_, size - 8, std::as_writable_bytes(std::span(last))).bytes,
                  8U);
        EXPECT_EQ(last, "12345678");
    }
  }
}

TEST_F(KeptWrites, EachIsDueByItsOwnAgeHoweverManyRequestsTheyTake) {
  wait_for_client();
  Nodes& nodes = system_.tree().nodes();
  WriteBuffer buffer(WriteBuffer::make(1 << 20));
  KeptFile kept(buffer, nodes, entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(kept.ask(system_.delegations().client(), nodes.identity(entry_.node).value(), "file"));
  const auto keep = [&](std::uint64_t offset) {
    EXPECT_EQ(kept.keep(offset, std::as_bytes(std::span("8 bytes", 8))).bytes, 8U);
    return KeptFile::Clock::now() + KeptFile::kKeptFor;
  };
  const std::vector<KeptFile::Clock::time_point> due{keep(0), keep(100), keep(200)};
  for (const auto latest : due) {
    EXPECT_LE(kept.due(), latest);
    EXPECT_TRUE(kept.write_some());
  }
  EXPECT_EQ(kept.due(), KeptFile::Clock::time_point::max());
  kept.give_back(false);
}

TEST_F(KeptWrites, AnOpenOfTheHostCallsTheFileBackOnce) {
  std::uint64_t size = 0;
  for (int i = 0; i < 3; ++i) {
    size = write_until_kept(size);
    write(size, "kept");
    size += 4;
    EXPECT_EQ(content_of(path()).size(), size);
    EXPECT_FALSE(system_.tree().write_behind().keeps(entry_.node));
  }
}

TEST_F(KeptWrites, AFileThatWasGivenBackBeforeItWasAskedForIsNotKept) {
  wait_for_client();
  WriteBuffer buffer(WriteBuffer::make(1 << 20));
  KeptFile kept(buffer, system_.tree().nodes(), entry_.node, *file_, 1 << 20);
  kept.give_back(false);
  const Identity identity = system_.tree().nodes().identity(entry_.node).value_or(Identity());
  EXPECT_FALSE(kept.ask(system_.delegations().client(), identity, "file"));
  EXPECT_EQ(kept.keep(0, std::as_bytes(std::span(std::string_view("lost")))).bytes, 0U);
  // Nothing is delegated, so the host's open does not wait.
  const UniqueFd native(::open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(native.valid()) << std::strerror(errno);
}

TEST_F(KeptWrites, AnErrorIsToldByTheNextWriteAndByClosesUntilASyncTellsItAndByASyncOfOthers) {
  OpenFile* other = nullptr;
  ASSERT_EQ(system_.files().open(entry_.node, O_RDWR, other), 0);
  file_->errors().note(ENOSPC);
  other->errors().note_other(ENOSPC);
  EXPECT_EQ(system_.files().flush(entry_.node, *other), 0);
  EXPECT_EQ(system_.files().sync(entry_.node, *other, false), ENOSPC);
  EXPECT_EQ(system_.files().sync(entry_.node, *other, false), 0);
  EXPECT_EQ(system_.files().write(entry_.node, *file_, 0, {}, OpenFiles::Write::page).error, 0);
  EXPECT_EQ(system_.files().write(entry_.node, *file_, 0, {}, OpenFiles::Write::kept).error, ENOSPC);
  write(0, "again");
  EXPECT_EQ(system_.files().flush(entry_.node, *file_), ENOSPC);
  EXPECT_EQ(system_.files().flush(entry_.node, *file_), ENOSPC);
  EXPECT_EQ(system_.files().sync(entry_.node, *file_, false), ENOSPC);
  EXPECT_EQ(system_.files().sync(entry_.node, *file_, false), 0);
  EXPECT_EQ(system_.files().flush(entry_.node, *file_), 0);
  system_.files().close(entry_.node, other);
}

TEST_F(KeptWrites, MemoryThatIsUsedUpIsWaitedFor) {
  const std::uint64_t size = write_until_kept(0);
  const std::string large(std::size_t{3} << 20, 'l');
  write(size, large);
  EXPECT_EQ(system_.files().sync(entry_.node, *file_, false), 0);
  EXPECT_EQ(content_of(path()).substr(size), large);
}

}  // namespace
}  // namespace wherry::file::mount
