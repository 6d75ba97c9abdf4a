// SPDX-License-Identifier: Apache-2.0
// A client that alone has a file open may hold back its writes until others open the file, and only for a limited time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/client/host_connection.hpp"
#include "file/server/write_delegation.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;
using namespace std::chrono_literals;
using Files = RecallWatcher::Files;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;

class WriteDelegations : public ::testing::Test {
 protected:
  explicit WriteDelegations(ServerOptions options = {.recall_timeout = 8s}) : served_(std::move(options)) {
    std::ofstream(path()) << "content";
  }
  void SetUp() override {
    if (!has_leases(path())) GTEST_SKIP() << "no leases here: " << std::strerror(errno);
  }

  [[nodiscard]] std::filesystem::path path() const { return served_.root() / "file"; }
  static Host::Handle open(Host& host, std::uint32_t flags = kReadWrite) {
    const Host::Opened opened = host.open("file", flags);
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }
  static std::uint64_t room(Host& host, Host::Handle handle, std::uint64_t client) {
    FileStatus status{};
    std::uint64_t granted = 0;
    EXPECT_EQ(host.writes().delegate(handle, client, status, granted), 0);
    EXPECT_NE(status.inode, 0U);
    return granted;
  }
  /// Asks until the delegation is granted: an earlier handle may be closed late, and a file that was opened rests.
  static void delegate(Host& host, Host::Handle handle, std::uint64_t client) {
    while (room(host, handle, client) == 0) std::this_thread::sleep_for(1ms);
  }
  static HostWrites::Written write(Host& host, Host::Handle handle, std::string_view text, std::uint32_t by = 0) {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    return host.writes().write(handle, 0, std::span(&part, 1), by);
  }
  /// A program of the host opens and reads the file, in a separate thread.
  [[nodiscard]] std::future<std::string> read_natively(int flags) const {
    return std::async(std::launch::async, [path = path(), flags] {
      const UniqueFd opened(::open(path.c_str(), flags | O_CLOEXEC));
      return opened.valid() ? content_of(path) : std::string(std::strerror(errno));
    });
  }

  ServedDirectory served_;
  Host host_{served_.client()};
  RecallWatcher watcher_{served_};
};

TEST_F(WriteDelegations, WhoeverOpensTheFileOnTheHostSeesWhatWasKept) {
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR | O_APPEND}) {
    const Host::Handle handle = open(host_);
    delegate(host_, handle, watcher_.number());
    auto content = read_natively(flags);
    ASSERT_EQ(watcher_.await_recalls().size(), 1U);
    EXPECT_EQ(write(host_, handle, std::to_string(flags)).result.bytes, std::to_string(flags).size());
    EXPECT_EQ(host_.writes().give_back(handle), 0);
    EXPECT_EQ(content.get(), std::to_string(flags) + std::string("content").substr(std::to_string(flags).size()));
    EXPECT_EQ(host_.close(handle), 0);
    std::ofstream(path()) << "content";
  }
}

TEST_F(WriteDelegations, AnOpenOfTheSameClientLeavesItsConnectionToWhatIsWritten) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  auto opened = std::async(std::launch::async, [&] { return host_.open("file", kFileOpenRead); });
  ASSERT_EQ(watcher_.await_recalls().size(), 1U);
  EXPECT_EQ(write(host_, handle, "kept").result.bytes, 4U);
  EXPECT_EQ(host_.writes().give_back(handle), 0);
  const Host::Opened other = opened.get();
  EXPECT_EQ(other.error, 0);
  EXPECT_EQ(read_all(host_, other.handle), "keptent");
}

TEST_F(WriteDelegations, OtherClientsAndCallsThatOpenTheFileWait) {
  const Host::Handle handle = open(host_);
  Host other(served_.client());
  const auto waits = [&](auto call) {
    delegate(host_, handle, watcher_.number());
    auto result = std::async(std::launch::async, call);
    EXPECT_EQ(watcher_.await_recalls().size(), 1U);
    EXPECT_EQ(host_.writes().give_back(handle), 0);
    return result.get();
  };
  EXPECT_EQ(waits([&] { return other.names().set_size("file", 3); }), 0);
  EXPECT_EQ(waits([&] { return host_.locks().open(handle, 0, std::make_shared<HeldLocks>()).error; }), 0);
}

TEST_F(WriteDelegations, AFileThatOthersHaveOpenIsNotDelegated) {
  const Host::Handle handle = open(host_);
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    const UniqueFd native(::open(path().c_str(), flags | O_CLOEXEC));
    EXPECT_EQ(room(host_, handle, watcher_.number()), 0U);
  }
  const Host::Handle second = open(host_, kFileOpenRead);
  EXPECT_EQ(room(host_, handle, watcher_.number()), 0U);
  EXPECT_EQ(host_.close(second), 0);
  EXPECT_NE(room(host_, handle, watcher_.number()), 0U);
  EXPECT_NE(room(host_, handle, watcher_.number()), 0U) << "again";
}

TEST_F(WriteDelegations, OnlyWhoHasItOpenForWritingAndHearsOfRecallsGetsAFile) {
  const Host::Handle reads = open(host_, kFileOpenRead);
  FileStatus status{};
  std::uint64_t granted = 1;
  EXPECT_EQ(host_.writes().delegate(reads, watcher_.number(), status, granted), EBADF);
  EXPECT_EQ(host_.writes().delegate(reads + 7, watcher_.number(), status, granted), EBADF);
  EXPECT_EQ(host_.close(reads), 0);
  const Host::Handle handle = open(host_);
  EXPECT_EQ(room(host_, handle, 0), 0U);
  EXPECT_EQ(room(host_, handle, watcher_.number() + 1), 0U);
  EXPECT_EQ(host_.writes().give_back(handle), 0) << "what it has not";
  EXPECT_EQ(write(host_, handle, "kept").result.error, ENOLCK);
  EXPECT_FALSE(write(host_, handle, "content").begun);
  EXPECT_EQ(content_of(path()), "content");
}

TEST_F(WriteDelegations, AClientThatOpensItsFilesAgainWaitsForThem) {
  const Host::Handle theirs = open(host_, kFileOpenRead);
  Host other(served_.client());
  const Host::Handle handle = open(other);
  served_.kill();
  while (served_.deaths() == 0) std::this_thread::sleep_for(1ms);
  RecallWatcher watcher(served_);
  FileStatus status{};
  ASSERT_EQ(other.status(handle, status), 0);  // connects
  delegate(other, handle, watcher.number());
  auto content = std::async(std::launch::async, [&] { return read_all(host_, theirs); });
  ASSERT_EQ(watcher.await_recalls().size(), 1U);
  EXPECT_EQ(write(other, handle, "kept").result.bytes, 4U);
  EXPECT_EQ(other.writes().give_back(handle), 0);
  EXPECT_EQ(content.get(), "keptent");
}

TEST_F(WriteDelegations, TheyEndWithTheHandleAndWithTheConnection) {
  {
    Host other(served_.client());
    const Host::Handle handle = open(other);
    delegate(other, handle, watcher_.number());
    EXPECT_EQ(other.close(handle), 0);
    EXPECT_EQ(read_natively(O_RDONLY).get(), "content");
    delegate(other, open(other), watcher_.number());
  }
  EXPECT_EQ(read_natively(O_RDWR).get(), "content");
}

TEST_F(WriteDelegations, ARecallIsRepeated) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  auto content = read_natively(O_RDONLY);
  const Files first = watcher_.await_recalls();
  EXPECT_EQ(watcher_.await_recalls(), first);
  EXPECT_EQ(room(host_, handle, watcher_.number()), 0U) << "no more may be kept";
  EXPECT_EQ(content.get(), "content");
}

/// The server's own descriptors of a file, as a client that it lends them to has them.
std::vector<UniqueFd> descriptors_of(pid_t server, const std::filesystem::path& file) {
  std::vector<UniqueFd> found;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, server, 0)));
  for (const auto& one : std::filesystem::directory_iterator("/proc/" + std::to_string(server) + "/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(one, gone) != file) continue;
    const int number = std::stoi(one.path().filename());
    UniqueFd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    if (taken.valid()) found.push_back(std::move(taken));
  }
  return found;
}

TEST_F(WriteDelegations, AClientThatTakesTheServersSignalsAwayDelaysOthersOnly) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  const auto taken = descriptors_of(served_.pid(), std::filesystem::canonical(path()));
  if (taken.empty()) GTEST_SKIP() << "no pidfd_getfd here";
  for (const UniqueFd& descriptor : taken) EXPECT_EQ(::fcntl(descriptor.get(), F_SETOWN, 0), 0);
  auto content = read_natively(O_RDONLY);
  EXPECT_EQ(watcher_.await_recalls().size(), 1U);
  EXPECT_EQ(write(host_, handle, "kept").result.bytes, 4U);
  EXPECT_EQ(host_.writes().give_back(handle), 0);
  EXPECT_EQ(content.get(), "keptent");
}

TEST_F(WriteDelegations, ReadsAreNotDelegatedMeanwhile) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  FileStatus status{};
  std::chrono::milliseconds kept_for{1};
  EXPECT_EQ(host_.delegate(handle, watcher_.number(), status, kept_for), 0);
  EXPECT_EQ(kept_for, 0ms);
  EXPECT_NE(room(host_, handle, watcher_.number()), 0U) << "it was recalled";
  EXPECT_EQ(write(host_, handle, "kept").result.bytes, 4U);
}

TEST_F(WriteDelegations, AWriteOfWhatWasKeptTellsWhenTheFileHasChanged) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  const HostWrites::Written written = write(host_, handle, "kept");
  FileStatus status{};
  EXPECT_EQ(host_.status(handle, status), 0);
  EXPECT_EQ(written.modified,
            static_cast<std::uint64_t>(status.modified.seconds) * 1'000'000'000 + status.modified.nanoseconds);
}

TEST_F(WriteDelegations, AWriteOfWhatWasKeptDropsSetIdBitsAsANativeOneWould) {
  const Host::Handle handle = open(host_);
  delegate(host_, handle, watcher_.number());
  const auto after_a_write = [&](::mode_t mode, std::uint32_t by) {
    EXPECT_EQ(::chmod(path().c_str(), mode), 0);
    EXPECT_EQ(write(host_, handle, "kept", by).result.bytes, 4U);
    struct stat found{};
    EXPECT_EQ(::stat(path().c_str(), &found), 0);
    return found.st_mode & 07777;
  };
  EXPECT_EQ(after_a_write(06755, 0), 06755U) << "root";
  EXPECT_EQ(after_a_write(06755, kFileWriteByUser), 0755U);
  EXPECT_EQ(after_a_write(02745, kFileWriteByUser), 02745U) << "not executable by the group";
  EXPECT_EQ(after_a_write(02745, kFileWriteByUser | kFileWriteByOutsider), 0745U);
  EXPECT_EQ(after_a_write(01644, kFileWriteByUser | kFileWriteByOutsider), 01644U);
}

TEST_F(WriteDelegations, OneClientDoesNotGetAllOfThem) {
  RecallWatcher other(served_);
  std::vector<Host::Handle> granted;
  const auto ask = [&](int i, const RecallWatcher& watcher) {
    const Host::Opened made = host_.open("many " + std::to_string(i), kReadWrite | kFileOpenCreate, 0644);
    EXPECT_EQ(made.error, 0);
    const bool is_granted = room(host_, made.handle, watcher.number()) != 0;
    if (is_granted) granted.push_back(made.handle);
    EXPECT_EQ(write(host_, made.handle, "text").result.error, is_granted ? 0 : ENOLCK);
    EXPECT_EQ(host_.write(made.handle, 0, std::as_bytes(std::span(std::string_view("text")))).bytes, 4U);
    return is_granted;
  };
  int count = 0;
  while (ask(count, watcher_)) ++count;
  EXPECT_GE(count, 8);
  EXPECT_LE(count, 64);
  EXPECT_TRUE(ask(1000, other)) << "of another client";
  EXPECT_EQ(host_.writes().give_back(granted.front()), 0);
  EXPECT_TRUE(ask(1001, watcher_));
}

TEST_F(WriteDelegations, AClientThatAsksForNonsenseHarmsNobody) {
  Host other(served_.client());
  const Host::Handle theirs = open(other);
  StreamConnection hostile(served_.address(), 0, {}, Timeout());
  const auto ask = [&](FileCall call, std::uint64_t handle, std::uint32_t flags, std::string_view data = {}) {
    FileRequest request{};
    request.call = static_cast<std::uint32_t>(call);
    request.handle = handle;
    request.flags = flags;
    request.offset = call == FileCall::write ? 0 : watcher_.number();
    request.length = data.size();
    const iovec part{const_cast<char*>(data.data()), data.size()};
    EXPECT_TRUE(hostile.send(request, {}, {}, Buffers(std::span(&part, 1)), data.size()));
    std::vector<std::byte> payload;
    const auto answer = hostile.receive(payload, 4096);
    return answer ? static_cast<int>(answer->error) : ECONNRESET;
  };
  for (std::uint64_t handle = 0; handle < 100; ++handle) {
    EXPECT_EQ(ask(FileCall::delegate_write, handle << 32 | handle % 2, 0), EBADF) << "another's";
    EXPECT_EQ(ask(FileCall::return_write, handle << 32 | handle % 2, 0), EBADF);
    EXPECT_EQ(ask(FileCall::write, handle << 32 | handle % 2, kFileWriteKept, "data"), EBADF);
  }
  delegate(other, theirs, watcher_.number());
  EXPECT_EQ(write(other, theirs, "kept").result.bytes, 4U);
  EXPECT_EQ(other.close(theirs), 0);
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::open);
  request.flags = kReadWrite;
  FileStatus status{};
  ASSERT_TRUE(hostile.send(request, "file", {}, Buffers({}), 0));
  const auto opened = hostile.receive(std::as_writable_bytes(std::span(&status, 1)));
  ASSERT_TRUE(opened && opened->error == 0);
  EXPECT_EQ(ask(FileCall::write, opened->value, 2, "data"), EINVAL);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(ask(FileCall::delegate_write, opened->value, 0), 0);
    EXPECT_EQ(ask(FileCall::return_write, opened->value, 0), 0);
  }
  EXPECT_EQ(ask(FileCall::write, opened->value, kFileWriteKept, "data"), ENOLCK);
  EXPECT_EQ(content_of(path()), "keptent");
}

class ShortWriteDelegations : public WriteDelegations {
 protected:
  ShortWriteDelegations() : WriteDelegations({.recall_timeout = 20ms}) {}
};

TEST_F(ShortWriteDelegations, AClientThatDoesNotAnswerIsCutOff) {
  const Host::Handle handle = open(host_);
  const Host::Handle source = host_.open("other", kReadWrite | kFileOpenCreate, 0644).handle;
  EXPECT_EQ(host_.write(source, 0, as_data("other")).bytes, 5U);
  delegate(host_, handle, watcher_.number());
  std::ofstream(path()) << "new content";  // waits for the end of the delegation
  EXPECT_EQ(write(host_, handle, "old").result.error, ESTALE);
  EXPECT_EQ(host_.write(handle, 0, as_data("old")).error, ESTALE);
  EXPECT_EQ(host_.set_size(handle, 1), ESTALE);
  EXPECT_EQ(host_.allocate(handle, 0, 0, 100), ESTALE);
  EXPECT_EQ(host_.copy(source, 0, handle, 0, 5).error, ESTALE);
  EXPECT_EQ(host_.flush(handle), ESTALE);
  FileStatus status{};
  std::uint64_t granted = 0;
  EXPECT_EQ(host_.writes().delegate(handle, watcher_.number(), status, granted), ESTALE);
  EXPECT_EQ(read_all(host_, handle), "new content");
  const Host::Handle again = open(host_);
  EXPECT_EQ(host_.write(again, 0, as_data("NEW")).bytes, 3U);
  EXPECT_EQ(content_of(path()), "NEW content");
}

TEST_F(ShortWriteDelegations, AClientThatDoesNotAnswerGetsNothingForAWhile) {
  const Host::Handle handle = open(host_);
  const Host::Handle unused = host_.open("unused", kReadWrite | kFileOpenCreate, 0644).handle;
  delegate(host_, handle, watcher_.number());
  EXPECT_EQ(read_natively(O_RDWR).get(), "content");
  EXPECT_EQ(room(host_, unused, watcher_.number()), 0U);
  RecallWatcher other(served_);
  delegate(host_, unused, other.number());
}

/// Passes times to the delegation instead of waiting.
class WriteDelegationTime : public ::testing::Test {
 protected:
  using State = WriteDelegation::State;
  static constexpr std::chrono::seconds kTimeout{8};

  WriteDelegationTime() { std::ofstream(path_) << "content"; }
  void SetUp() override {
    if (!has_leases(path_)) GTEST_SKIP() << "no leases here";
    opened_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    delegation_ = WriteDelegation::take(opened_.get(), 1, kTimeout, ::gettid());
    ASSERT_NE(delegation_, nullptr);
  }
  [[nodiscard]] int open_natively() const {
    const UniqueFd opened(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return opened.valid() ? 0 : errno;
  }
  bool may_change() { return WriteDelegation::Change(delegation_.get()).is_allowed(); }

  test::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "file";
  UniqueFd opened_;
  std::shared_ptr<WriteDelegation> delegation_;
};

TEST_F(WriteDelegationTime, IsHeldForAsLongAsNobodyOpensTheFile) {
  EXPECT_EQ(delegation_->look(WriteDelegation::Clock::now() + 1h), State::held);
  EXPECT_TRUE(may_change());
  EXPECT_FALSE(delegation_->was_recalled());
}

TEST_F(WriteDelegationTime, CountsFromTheRecall) {
  const auto recalled = WriteDelegation::Clock::now();
  EXPECT_EQ(open_natively(), EWOULDBLOCK);
  EXPECT_EQ(delegation_->look(recalled), State::recalled);
  EXPECT_EQ(delegation_->look(recalled + kTimeout - 1ms), State::recalled);
  EXPECT_EQ(delegation_->look(recalled + kTimeout), State::over);
  EXPECT_FALSE(may_change());
  EXPECT_EQ(open_natively(), 0);
}

TEST_F(WriteDelegationTime, CountsFromTheLastChangeForAWhile) {
  const auto held = WriteDelegation::Clock::now();
  EXPECT_EQ(delegation_->look(held), State::held);
  EXPECT_EQ(open_natively(), EWOULDBLOCK);
  EXPECT_EQ(delegation_->look(held), State::recalled);
  std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(may_change());
  EXPECT_EQ(delegation_->look(held + kTimeout + 1ms), State::recalled);
  delegation_->end();
  EXPECT_EQ(open_natively(), 0);
}

TEST_F(WriteDelegationTime, EndsBeforeTheKernelGivesTheFileToOthers) {
  const auto held = WriteDelegation::Clock::now();
  EXPECT_EQ(delegation_->look(held), State::held);
  EXPECT_EQ(open_natively(), EWOULDBLOCK);
  // As if the server had been stopped since then: time counts although this is its first look at the recall.
  EXPECT_EQ(delegation_->look(held + WriteDelegation::kTimeouts * kTimeout), State::over);
  EXPECT_FALSE(may_change());
}

TEST_F(WriteDelegationTime, NoneIsTakenThatTheKernelWouldEnd) {
  delegation_->end();
  EXPECT_EQ(WriteDelegation::take(opened_.get(), 1, 24h, ::gettid()), nullptr);
}

}  // namespace
}  // namespace wherry::file
