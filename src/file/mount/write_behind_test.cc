// SPDX-License-Identifier: Apache-2.0
// Every call that begins after a write was acknowledged sees that write, whatever other threads do.
#include "file/mount/write_behind.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/mount/file_system.hpp"
#include "file/mount/kept_file.hpp"
#include "file/wire/status.hpp"
#include "tests/common/program_ring.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

class KeptWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path()) << "";
    if (!has_leases(path())) GTEST_SKIP() << "no leases here: " << std::strerror(errno);
    system_.tree().write_behind().start([this] { return system_.delegations().client(); });
    system_.delegations().start([](NodeId) {}, system_.tree().write_behind());
    if (system_.files().create(kRootNode, "file", 0644, O_RDWR, entry_, file_) != 0) FAIL() << "no file";
  }
  void TearDown() override {
    if (file_ != nullptr) system_.files().close(entry_.node, file_);
    system_.delegations().stop();
    system_.tree().write_behind().stop();
  }

  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  void write(std::uint64_t offset, std::string_view text) {
    const Result result =
        system_.files().write(entry_.node, *file_, offset, std::as_bytes(std::span(text)), OpenFiles::Write::kept);
    EXPECT_EQ(result.bytes, text.size()) << result;
  }
  void wait_for_client() {
    while (system_.delegations().client() == 0) std::this_thread::sleep_for(1ms);
  }
  /// Writes at the end until writes are held back. Returns the size.
  std::uint64_t write_until_kept(std::uint64_t size) {
    while (!system_.tree().write_behind().keeps(entry_.node)) {
      write(size, "12345678");
      size += 8;
    }
    return size;
  }

  ServedDirectory served_;
  FileSystem system_{served_.client(), 3, WriteBuffer::make(1 << 20)};
  Entry entry_;
  OpenFile* file_ = nullptr;
};

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

/// A KeptFile that the test controls directly.
class OneKeptFile : public KeptWrites {
 protected:
  bool ask(KeptFile& kept) {
    return kept.ask(system_.delegations().client(), system_.tree().nodes().identity(entry_.node).value(), "file");
  }
  static std::size_t keep(KeptFile& kept, std::uint64_t offset, std::string_view text) {
    return kept.keep(offset, as_data(text)).bytes;
  }

  WriteBuffer buffer_{WriteBuffer::make(1 << 20)};
};

/// Stops the server's process for a scope.
class Stopped {
 public:
  explicit Stopped(const ServedDirectory& served) : pid_(served.pid()) {
    ::kill(pid_, SIGSTOP);
    while (content_of("/proc/" + std::to_string(pid_) + "/stat").find(") T ") == std::string::npos)
      std::this_thread::sleep_for(1ms);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() { ::kill(pid_, SIGCONT); }

 private:
  pid_t pid_;
};

TEST_F(OneKeptFile, WhatIsWrittenWithoutTheDelegationIsNoChangeByOthers) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(ask(kept));
  ASSERT_EQ(keep(kept, 0, "kept"), 4U);
  served_.kill();  // this ends the delegation
  EXPECT_TRUE(kept.write_some());
  ASSERT_EQ(content_of(path()), "kept");
  layout::FileStatus now{};
  ASSERT_EQ(file_->file().use()->status(file_->file().handle(), now), 0);
  const auto left = buffer_.left();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].size, now.size);
  EXPECT_EQ(left[0].modified, nanoseconds_of(now.modified));
  kept.give_back(false);
}

TEST_F(OneKeptFile, TheNextDaemonKnowsWhoseWritesAreKept) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(ask(kept));
  const auto drops = [&] { return buffer_.left().at(0).drops; };
  ASSERT_EQ(keep(kept, 0, "root"), 4U);
  EXPECT_EQ(drops(), 0U);
  const Writer user{.user = 65534, .group = 65534, .process = ::getpid()};
  ASSERT_EQ(kept.keep(4, as_data("user"), user).bytes, 4U);
  EXPECT_NE(drops() & layout::kFileWriteByUser, 0U);
  EXPECT_EQ(::chmod(path().c_str(), 04755), 0);
  served_.kill();  // later writes have no delegation
  EXPECT_TRUE(kept.write_some());
  EXPECT_EQ(drops(), 0U);
  struct stat found{};
  EXPECT_EQ(::stat(path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0755U);
  kept.give_back(false);
}

TEST_F(OneKeptFile, NothingIsKeptOnceItIsRecalled) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(ask(kept));
  ASSERT_EQ(keep(kept, 0, "kept"), 4U);
  kept.recall();
  EXPECT_EQ(keep(kept, 4, "late"), 0U);
  EXPECT_EQ(kept.append(as_data("late"), {}, [](std::uint64_t) {}).why, KeptFile::Why::over);
  kept.give_back(false);
  EXPECT_EQ(content_of(path()), "kept");
}

TEST_F(OneKeptFile, NothingIsKeptWhileItIsRenewed) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(ask(kept));
  ASSERT_EQ(keep(kept, 0, "kept"), 4U);
  std::future<void> renewed;
  {
    const Stopped server(served_);
    renewed = std::async(std::launch::async, [&] { kept.renew(system_.delegations().client(), UINT64_MAX); });
    while (!buffer_.left().at(0).sending) std::this_thread::yield();
    EXPECT_EQ(keep(kept, 4, "early"), 0U);
    EXPECT_TRUE(kept.is_held()) << "it is not to be given back";
  }
  renewed.get();
  EXPECT_EQ(keep(kept, 4, ", more"), 6U);
  EXPECT_EQ(kept.append(as_data(", end"), {}, [](std::uint64_t end) { EXPECT_EQ(end, 10U); }).bytes, 5U);
  kept.give_back(false);
  EXPECT_EQ(content_of(path()), "kept, more, end");
}

TEST_F(OneKeptFile, OneThatIsRenewedAlreadyIsNotRenewedAgain) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  ASSERT_TRUE(ask(kept));
  ASSERT_EQ(keep(kept, 0, "kept"), 4U);
  kept.renew(system_.delegations().client(), 1);
  EXPECT_EQ(std::filesystem::file_size(path()), 0U) << "there was room";  // does not open the file: an open would wait
                                                                          // for the end of the delegation
  kept.give_back(false);
}

TEST_F(OneKeptFile, NothingIsKeptOfAFileThatIsGivenBackWhileItIsAskedFor) {
  wait_for_client();
  KeptFile kept(buffer_, system_.tree().nodes(), entry_.node, *file_, 1 << 19);
  std::future<bool> asked;
  std::future<void> given_back;
  {
    const Stopped server(served_);
    asked = std::async(std::launch::async, [&] { return ask(kept); });
    while (buffer_.left().empty()) std::this_thread::yield();
    given_back = std::async(std::launch::async, [&] { kept.give_back(false); });
    // If it has not begun by then, it comes later, and the test proves less.
    std::this_thread::sleep_for(50ms);
  }
  (void)asked.get();
  given_back.get();
  EXPECT_EQ(keep(kept, 0, "lost"), 0U);
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

class RingWrites : public KeptWrites {
 protected:
  void open_to_append() {
    system_.files().close(entry_.node, file_);
    ASSERT_EQ(system_.files().open(entry_.node, O_WRONLY | O_APPEND, file_), 0);
    keep();
  }
  /// Keeps writes of the file in a buffer of this test.
  void keep() {
    wait_for_client();
    kept_.emplace(buffer_, system_.tree().nodes(), entry_.node, *file_, std::size_t{8} << 20);
    const auto identity = system_.tree().nodes().identity(entry_.node);
    ASSERT_TRUE(identity.has_value());
    ASSERT_TRUE(kept_->ask(system_.delegations().client(), *identity, "file"));
  }
  void attach() {
    if (!kept_) keep();
    WriteRing::Taken taken = WriteRing::take(static_cast<pid_t>(::syscall(SYS_gettid)), program_.offer());
    ASSERT_EQ(taken.error, 0);
    ASSERT_EQ(kept_->attach(std::move(taken.ring), {}, [](WriteRing&, WriteBuffer::FileNumber) {}), 0);
  }
  /// What the server's file has. An open would end the delegation.
  [[nodiscard]] std::string written() const {
    std::string text(std::size_t{4} << 20, ' ');
    const Result got = file_->file().use()->read(file_->file().handle(), 0, std::as_writable_bytes(std::span(text)));
    text.resize(got.bytes);
    return text;
  }
  void TearDown() override {
    if (kept_) kept_->give_back(false);
    KeptWrites::TearDown();
  }

  ProgramRing program_;
  WriteBuffer buffer_{WriteBuffer::make(2 * WriteBuffer::kPiece)};
  std::optional<KeptFile> kept_;
};

TEST_F(RingWrites, AreWrittenThoughOthersFillTheMemory) {
  attach();
  const auto other = buffer_.add_file({}, "other");
  ASSERT_TRUE(other.has_value());
  const std::vector<std::byte> piece(WriteBuffer::kPiece);
  while (buffer_.add(*other, 0, piece)) continue;
  program_.write(0, "abc");
  program_.write(1, "xyz");
  kept_->write_all();
  EXPECT_EQ(written(), "axyz");
  program_.write(4, "more");
  kept_->give_back(false);
  EXPECT_EQ(written(), "axyzmore");
  EXPECT_FALSE(program_.write(8, "late"));
}

TEST_F(RingWrites, AreTakenOnceThoughMemoryBecomesFreeWhileOneIsSent) {
  attach();
  const auto other = buffer_.add_file({}, "other");
  ASSERT_TRUE(other.has_value());
  const std::vector<std::byte> piece(WriteBuffer::kPiece);
  std::vector<WriteBuffer::RecordNumber> records;
  while (const auto record = buffer_.add(*other, 0, piece)) records.push_back(*record);
  program_.write(0, "one");
  std::future<void> written;
  {
    const Stopped server(served_);
    written = std::async(std::launch::async, [&] { kept_->write_all(); });
    while (!buffer_.left().at(0).sending) std::this_thread::yield();
    for (const WriteBuffer::RecordNumber record : records) buffer_.remove(record);
    kept_->look_at_ring(true);
    program_.write(3, " two, and more");
    kept_->look_at_ring(true);
  }
  written.get();
  program_.write(17, " three");
  program_.write(23, " four");
  kept_->give_back(false);
  EXPECT_EQ(content_of(path()), "one two, and more three four");
}

TEST_F(RingWrites, OfAFileThatIsAppendedToAreWholeInTheMemory) {
  open_to_append();
  attach();
  const std::string data(20'000, 'a');
  for (std::uint64_t end = 0; end < 10 * data.size(); end += data.size()) program_.write(end, data);
  kept_->look_at_ring(true);
  const auto left = buffer_.left();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_FALSE(left[0].records.empty());
  for (const WriteBuffer::RecordNumber record : left[0].records)
    EXPECT_EQ(buffer_.data(record).size() % data.size(), 0U);
}

TEST_F(RingWrites, AreWrittenThoughTheyAreMoreThanTheMemory) {
  attach();
  const std::string data(50'000, 'd');
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(program_.write(static_cast<std::uint64_t>(i) * data.size(), data));
  kept_->write_all();
  std::string all;
  for (int i = 0; i < 30; ++i) all += data;
  EXPECT_EQ(written(), all);
}

TEST_F(RingWrites, ComeBeforeTheWriteThatIsKeptNext) {
  attach();
  program_.write(0, "ring");
  EXPECT_EQ(kept_->keep(0, std::as_bytes(std::span("kernel", 6))).bytes, 6U);
  program_.write(5, "L");
  kept_->write_all();
  EXPECT_EQ(written(), "kerneL");
}

TEST_F(RingWrites, ToAFileThatIsAppendedToGoToItsEnd) {
  open_to_append();
  EXPECT_EQ(kept_->append(as_data("one"), {}, [](std::uint64_t) {}).bytes, 3U);
  attach();
  EXPECT_EQ(program_.header().end.load(), 3U);
  program_.write(3, " two");
  program_.write(7, " three");
  EXPECT_EQ(kept_->append(as_data(" four"), {}, [](std::uint64_t end) { EXPECT_EQ(end, 13U); }).bytes, 5U);
  EXPECT_FALSE(program_.write(13, " late")) << "the program does not know the end any more";
  kept_->give_back(false);
  EXPECT_EQ(content_of(path()), "one two three four");
}

TEST_F(RingWrites, ToAFileThatIsAppendedToGoToItsEndThoughOthersFillTheMemory) {
  open_to_append();
  EXPECT_EQ(kept_->append(as_data("one"), {}, [](std::uint64_t) {}).bytes, 3U);
  attach();
  kept_->write_all();
  const auto other = buffer_.add_file({}, "other");
  ASSERT_TRUE(other.has_value());
  const std::vector<std::byte> piece(WriteBuffer::kPiece);
  while (buffer_.add(*other, 0, piece)) continue;
  program_.write(3, " two");
  program_.write(7, " three");
  kept_->give_back(false);
  EXPECT_EQ(content_of(path()), "one two three");
}

TEST_F(RingWrites, AreNoMoreThanTheServerHasRoomFor) {
  attach();
  const std::string data(60'000, 'r');
  constexpr std::uint64_t kRoom = std::uint64_t{64} << 20;  // if the disk has enough
  std::uint64_t all = 0;
  while (program_.has_room(data.size()) && all <= kRoom) {
    program_.write(all, data);
    all += data.size();
    if (program_.has_room(data.size())) continue;
    kept_->look_at_ring(true);
    kept_->write_all();
  }
  EXPECT_LE(all, kRoom);
  EXPECT_EQ(kept_->keep(0, std::as_bytes(std::span("x", 1))).why, KeptFile::Why::no_room) << "the ring has the rest";
  kept_->renew(system_.delegations().client(), KeptFile::kRoomForRing);
  EXPECT_EQ(kept_->keep(0, std::as_bytes(std::span("x", 1))).why, KeptFile::Why::done);
  EXPECT_TRUE(program_.has_room(data.size()));
}

TEST_F(RingWrites, AreAnErrorIfTheProgramDamagesTheRing) {
  attach();
  program_.write(0, "sound");
  program_.header().last += 8;
  kept_->write_all();
  EXPECT_EQ(file_->errors().take_for_sync(), EIO);
  EXPECT_FALSE(kept_->is_held());
}

}  // namespace
}  // namespace wherry::file::mount
