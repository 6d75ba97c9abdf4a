// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "file/wire/status.hpp"
#include "tests/common/kept_writes.hpp"
#include "tests/common/program_ring.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;

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

class RingWrites : public KeptWrites {
 protected:
  void open_again(int flags) {
    system_.files().close(entry_.node, file_);
    ASSERT_EQ(system_.files().open(entry_.node, flags, file_), 0);
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
  /// Fills the write buffer with records of another file.
  std::vector<WriteBuffer::RecordNumber> fill_memory() {
    const auto other = buffer_.add_file({}, "other");
    const std::vector<std::byte> piece(WriteBuffer::kPiece);
    std::vector<WriteBuffer::RecordNumber> records;
    while (const auto record = other ? buffer_.add(*other, 0, piece) : std::nullopt) records.push_back(*record);
    return records;
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
  fill_memory();
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
  const auto records = fill_memory();
  ASSERT_FALSE(records.empty());
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

TEST_F(RingWrites, ThatAreBeingSentAreWaitedForByAWriteThatIsKeptNext) {
  attach();
  const auto records = fill_memory();
  program_.write(0, "ring");
  std::future<void> written;
  std::future<KeptFile::Kept> kept;
  {
    const Stopped server(served_);
    written = std::async(std::launch::async, [&] { kept_->write_all(); });
    while (!buffer_.left().at(0).sending) std::this_thread::yield();
    EXPECT_EQ(kept_->keep(0, as_data("kernel")).why, KeptFile::Why::sending);
    EXPECT_EQ(kept_->append(as_data("kernel"), {}, [](std::uint64_t) {}).why, KeptFile::Why::sending);
    kept = std::async(std::launch::async, [&] {
      kept_->empty_ring();
      return kept_->keep(0, as_data("kernel"));
    });
    for (const WriteBuffer::RecordNumber record : records) buffer_.remove(record);
  }
  written.get();
  EXPECT_EQ(kept.get().bytes, 6U);
  EXPECT_TRUE(kept_->is_held());
  kept_->write_all();
  EXPECT_EQ(this->written(), "kernel");
}

TEST_F(RingWrites, OfAFileThatIsAppendedToAreWholeInTheMemory) {
  open_again(O_WRONLY | O_APPEND);
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
  open_again(O_WRONLY);
  attach();
  program_.write(0, "ring");
  EXPECT_EQ(kept_->keep(0, std::as_bytes(std::span("kernel", 6))).bytes, 6U);
  program_.write(5, "L");
  kept_->give_back(false);
  EXPECT_EQ(content_of(path()), "kerneL");
}

TEST_F(RingWrites, ToAFileThatCanBeReadEndWithAWriteByTheKernelWhichHasPagesThen) {
  attach();
  EXPECT_TRUE(program_.write(0, "ring"));
  EXPECT_EQ(kept_->keep(0, std::as_bytes(std::span("kernel", 6))).bytes, 6U);
  EXPECT_FALSE(program_.write(5, "L"));
  kept_->write_all();
  EXPECT_EQ(written(), "kernel");
}

TEST_F(RingWrites, ThatWereAddedBeforeTheEndOfTheRingAreWritten) {
  attach();
  EXPECT_TRUE(program_.write(0, "ring"));
  kept_->end_ring();
  EXPECT_FALSE(program_.write(4, "late"));
  kept_->write_all();
  EXPECT_EQ(written(), "ring");
}

TEST_F(RingWrites, ToAFileThatIsAppendedToGoToItsEnd) {
  open_again(O_WRONLY | O_APPEND);
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
  open_again(O_WRONLY | O_APPEND);
  EXPECT_EQ(kept_->append(as_data("one"), {}, [](std::uint64_t) {}).bytes, 3U);
  attach();
  kept_->write_all();
  fill_memory();
  program_.write(3, " two");
  program_.write(7, " three");
  kept_->give_back(false);
  EXPECT_EQ(content_of(path()), "one two three");
}

TEST_F(RingWrites, AreNoMoreThanTheServerHasRoomFor) {
  open_again(O_WRONLY);
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
