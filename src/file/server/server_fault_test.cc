// SPDX-License-Identifier: Apache-2.0
// Servers and clients are killed at every step of the protocol.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <wherry/error.hpp>

#include "arch/barrier.hpp"
#include "file/wire/status.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/recall_watcher.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/served_directory.hpp"
#include "tests/common/soak.hpp"

namespace wherry::file {
namespace {

namespace fs = std::filesystem;
using namespace layout;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;
constexpr std::uint32_t kAppend = kFileOpenWrite | kFileOpenAppend;
constexpr std::size_t kPiece = 150'000;

/// A server built with a sanitizer takes a second to restart.
constexpr int kRounds = WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0 ? 3 : 12;

const Pattern& pattern() {
  static const Pattern made(17);
  return made;
}

/// A file whose writes are kept, as a mount does it: they are sent later, and after a restart of the server only if the
/// file is unchanged.
class KeptFile {
 public:
  /// @param served  null: no write is kept
  KeptFile(Host& host, const ServedDirectory* served, Host::Handle handle)
      : host_(host), served_(served), handle_(handle) {}

  /// Returns what failed.
  std::string write(std::uint64_t offset, std::span<const std::byte> data) {
    if (!is_delegated_) delegate();
    for (std::size_t done = 0; done < data.size();) {
      const iovec rest{const_cast<std::byte*>(data.data()) + done, data.size() - done};
      if (!is_delegated_) return write_undelegated(offset + done, data.subspan(done));
      const HostWrites::Written written = host_.writes().write(handle_, offset + done, std::span(&rest, 1));
      is_delegated_ = written.result.error != ENOLCK;
      if (!is_delegated_ && !is_unchanged(offset + data.size(), written.begun)) return "kept: the file seems changed";
      if (is_delegated_ && written.result.bytes == 0) return "kept: " + written.result.to_string();
      if (!is_delegated_) continue;
      done += written.result.bytes;
      size_ = std::max(size_, offset + done);
      modified_ = written.modified;
    }
    return "";
  }

 private:
  /// A file that has just been opened is delegated a little later. The request for a delegation does not connect to a
  /// server that was restarted; the one for the status does.
  void delegate() {
    while (!is_delegated_ && served_ != nullptr && leases_work()) {
      std::uint64_t room = 0;
      FileStatus status{};
      try {
        (void)host_.status(handle_, status);
        watcher_.emplace(*served_);
        is_delegated_ = host_.writes().delegate(handle_, watcher_->number(), status, room) == 0 && room != 0;
      } catch (const std::exception&) {  // the server starts again
      }
      note(status);
      if (!is_delegated_) ::usleep(1000);
    }
  }
  [[nodiscard]] bool leases_work() const {
    const fs::path probe = served_->outside() / "probe";
    if (!fs::exists(probe)) std::ofstream(probe) << "";
    return has_leases(probe);
  }
  std::string write_undelegated(std::uint64_t offset, std::span<const std::byte> data) {
    const Result result = host_.write(handle_, offset, data);
    return result.bytes == data.size() ? "" : "kept, not delegated: " + result.to_string();
  }
  bool is_unchanged(std::uint64_t end, bool begun) {
    FileStatus now{};
    if (host_.status(handle_, now) != 0) return false;
    return begun ? now.size >= size_ && now.size <= std::max(size_, end)
                 : now.size == size_ && nanoseconds_of(now.modified) == modified_;
  }
  void note(const FileStatus& status) {
    size_ = status.size;
    modified_ = nanoseconds_of(status.modified);
  }

  Host& host_;
  const ServedDirectory* served_;
  const Host::Handle handle_;
  std::optional<RecallWatcher> watcher_{};
  bool is_delegated_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t modified_ = 0;
};

/// A sequence of calls with known results. Returns the call that failed.
/// @param keeps  where writes are kept; null: nowhere
std::string work(Host& host, const ServedDirectory* keeps) {
  const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  const Host::Opened log = host.open("log", kAppend | kFileOpenCreate, 0644);
  const Host::Opened kept = host.open("kept", kReadWrite | kFileOpenCreate, 0644);
  if (file.error != 0 || log.error != 0 || kept.error != 0) return "open";
  KeptFile kept_file(host, keeps, kept.handle);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto data = pattern().bytes(kPiece, i * kPiece);
    if (host.write(file.handle, i * kPiece, data).bytes != kPiece) return "write";
    const Result result = host.append(log.handle, data);
    if (result.bytes != kPiece) return "append: " + result.to_string();
    if (const std::string failed = kept_file.write(i * kPiece, data); !failed.empty()) return failed;
  }
  if (host.flush(file.handle) != 0) return "flush";
  if (host.names().link("file", "linked") != 0) return "link";
  if (host.names().rename("log", "moved") != 0) return "rename";
  FileStatus status{};
  if (host.status(log.handle, status) != 0 || status.size != 3 * kPiece) return "status";
  if (host.names().symlink("symbolic", "file") != 0) return "symlink";
  if (host.names().remove("linked") != 0) return "remove";
  if (host.names().set_mode("file", 0600) != 0) return "set_mode";
  std::vector<std::byte> back(3 * kPiece);
  if (host.read(file.handle, 0, back).bytes != back.size() || !pattern().matches(back, 0)) return "read";
  for (const Host::Opened& one : {file, log, kept}) {
    if (host.close(one.handle) != 0) return "close";
  }
  return "";
}

void expect_worked(const fs::path& root) {
  const std::string file = content_of(root / "file");
  const std::string moved = content_of(root / "moved");
  const std::string kept = content_of(root / "kept");
  EXPECT_EQ(file.size(), 3 * kPiece);
  EXPECT_EQ(moved.size(), 3 * kPiece);
  EXPECT_TRUE(pattern().matches(as_data(file), 0));
  EXPECT_EQ(kept.size(), 3 * kPiece);
  EXPECT_TRUE(pattern().matches(as_data(moved), 0));
  EXPECT_TRUE(pattern().matches(as_data(kept), 0));
  EXPECT_EQ(fs::read_symlink(root / "symbolic"), "file");
  EXPECT_FALSE(fs::exists(root / "linked"));
  EXPECT_FALSE(fs::exists(root / "log"));
}

void clean(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root)) fs::remove_all(entry);
}

/// Where the server is killed, and whether data moves by its descriptors.
struct Killing {
  FaultPoint point;
  bool borrows = false;
};

class ServerKilled : public ::testing::TestWithParam<Killing> {
 protected:
  [[nodiscard]] static HostOptions options(const ServedDirectory& served) {
    HostOptions options = served.client();
    options.borrows = GetParam().borrows;
    return options;
  }
  /// A file whose descriptor is lent is not delegated.
  [[nodiscard]] static const ServedDirectory* keeps_at(const ServedDirectory& served) {
    return GetParam().borrows ? nullptr : &served;
  }
  /// Retries: a server that died at the end of the last round may not have restarted yet.
  [[nodiscard]] static std::unique_ptr<Host> connected(const ServedDirectory& served) {
    while (true) {
      try {
        return std::make_unique<Host>(options(served));
      } catch (const Error& error) {
        if (error.code().value() != ECONNREFUSED && error.code().value() != ECONNRESET) throw;
      }
    }
  }
};

TEST_P(ServerKilled, ItsClientGoesOnWithTheNextAndNothingIsLostOrDoneTwice) {
  const ServedDirectory served;
  {
    const auto host = connected(served);
    ASSERT_EQ(work(*host, keeps_at(served)), "");
  }
  const int times = served.plan().passed.at(static_cast<std::size_t>(GetParam().point));
  ASSERT_GT(times, 0) << "the work does not come by there";
  const int step = soaking() ? 1 : std::max(1, times / kRounds);
  int rounds = 0;
  for (int time = 1; time < times; time += step) {
    SCOPED_TRACE(time);
    clean(served.root());
    const auto host = connected(served);
    served.plan().kill_at(GetParam().point, time);
    ASSERT_EQ(work(*host, keeps_at(served)), "");
    served.plan().point = -1;
    // All deaths so far. If the work continues without the server, a death of the last round is counted late.
    EXPECT_LE(served.deaths(), ++rounds);
    expect_worked(served.root());
  }
  EXPECT_GT(served.deaths(), 0);
}

TEST_P(ServerKilled, AgainAndAgain) {
  const ServedDirectory served;
  served.plan().kill_at(GetParam().point, 5);
  Child killer([&] {
    while (true) {
      if (served.plan().countdown <= 0) served.plan().countdown = 20;
      ::usleep(500);
    }
    return true;
  });
  for (int i = 0; i < (kRounds + 3) / 4; ++i) {
    clean(served.root());
    const auto host = connected(served);
    ASSERT_EQ(work(*host, keeps_at(served)), "");
    expect_worked(served.root());
  }
}

std::string name_of(FaultPoint point) {
  switch (point) {
    case FaultPoint::request_taken:
      return "RequestTaken";
    case FaultPoint::piece_written:
      return "PieceWritten";
    case FaultPoint::call_made:
      return "CallMade";
    case FaultPoint::piece_read:
      return "PieceRead";
    case FaultPoint::answered:
      return "Answered";
    case FaultPoint::request_sent:
      return "RequestSent";
    case FaultPoint::data_sent:
      return "DataSent";
    default:
      return "AnswerBegun";
  }
}

std::string point_name(const testing::TestParamInfo<FaultPoint>& info) { return name_of(info.param); }
std::string killing_name(const testing::TestParamInfo<Killing>& info) {
  return name_of(info.param.point) + (info.param.borrows ? "Lent" : "");
}

INSTANTIATE_TEST_SUITE_P(Points, ServerKilled,
                         testing::Values(Killing{FaultPoint::request_taken}, Killing{FaultPoint::piece_written},
                                         Killing{FaultPoint::call_made}, Killing{FaultPoint::piece_read},
                                         Killing{FaultPoint::answered}, Killing{FaultPoint::request_taken, true},
                                         Killing{FaultPoint::call_made, true}, Killing{FaultPoint::answered, true}),
                         killing_name);

/// The number of files below `root` that a process has open.
std::size_t open_files(pid_t pid, const fs::path& root) {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    std::error_code ignored;
    if (fs::read_symlink(entry.path(), ignored).string().starts_with(root.string() + "/")) ++count;
  }
  return count;
}

class ClientKilled : public ::testing::TestWithParam<FaultPoint> {};

TEST_P(ClientKilled, ItsFilesAreClosedAndOthersAreServed) {
  const ServedDirectory served;
  const SharedValue<FaultPlan> plan;
  Host other(served.client());
  const Host::Opened mine = other.open("mine", kReadWrite | kFileOpenCreate, 0644);
  for (int time = 1; time < 30; time += 30 / kRounds) {
    SCOPED_TRACE(time);
    plan->kill_at(GetParam(), time);
    Child client([&] {
      Host host(served.client(plan->at()));
      (void)work(host, &served);
      return true;
    });
    client.wait();
    while (open_files(served.pid(), served.root()) > 1) std::this_thread::yield();
    const auto data = pattern().bytes(kPiece, static_cast<std::uint64_t>(time));
    EXPECT_EQ(other.write(mine.handle, 0, data).bytes, kPiece);
    EXPECT_TRUE(pattern().matches(as_data(read_all(other, mine.handle)), static_cast<std::uint64_t>(time)));
    const std::string file = content_of(served.root() / "file");
    const std::string kept = content_of(served.root() / "kept");
    EXPECT_TRUE(pattern().matches(as_data(file), 0));
    EXPECT_TRUE(pattern().matches(as_data(kept), 0));
    for (const char* name : {"file", "log", "moved", "kept", "linked", "symbolic"}) fs::remove(served.root() / name);
  }
  EXPECT_EQ(served.deaths(), 0);
}

INSTANTIATE_TEST_SUITE_P(Points, ClientKilled,
                         testing::Values(FaultPoint::request_sent, FaultPoint::data_sent, FaultPoint::answer_begun),
                         point_name);

TEST(ServerGone, ItIsWaitedForAsLongAsIsSaid) {
  std::optional<ServedDirectory> served(std::in_place);
  HostOptions options = served->client();
  options.timeout = std::chrono::milliseconds(50);
  Host host(options);
  const Host::Opened opened = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  served.reset();
  EXPECT_EQ(host.write(opened.handle, 0, as_data("x")).error, EIO);
  FileStatus status{};
  EXPECT_EQ(host.names().status(".", true, status), EIO);
}

class ServerRestartedWith : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, ServerRestartedWith, testing::Bool(),
                         [](const auto& with) { return with.param ? "LentDescriptors" : "ItsOwn"; });

TEST_P(ServerRestartedWith, AnotherFileUnderTheNameIsNotTheSame) {
  const ServedDirectory served;
  HostOptions options = served.client();
  options.borrows = GetParam();
  Host host(options);
  const Host::Opened replaced = host.open("replaced", kReadWrite | kFileOpenCreate, 0644);
  const Host::Opened removed = host.open("removed", kReadWrite | kFileOpenCreate, 0644);
  const Host::Opened kept = host.open("kept", kReadWrite | kFileOpenCreate, 0644);
  for (const Host::Opened& file : {replaced, removed, kept}) {
    ASSERT_EQ(host.write(file.handle, 0, as_data("y")).bytes, 1U);
  }
  std::ofstream(served.root() / "new") << "another";
  fs::rename(served.root() / "new", served.root() / "replaced");
  fs::remove(served.root() / "removed");
  const pid_t first = served.pid();
  served.kill();
  while (served.pid() == first) std::this_thread::yield();
  FileStatus status{};
  EXPECT_EQ(host.names().status(".", true, status), 0);  // notices the restart
  EXPECT_EQ(host.write(kept.handle, 0, as_data("x")).bytes, 1U);
  EXPECT_EQ(host.write(replaced.handle, 0, as_data("x")).error, ESTALE);
  EXPECT_EQ(host.flush(removed.handle), ESTALE);
  EXPECT_EQ(content_of(served.root() / "replaced"), "another");
  EXPECT_EQ(host.close(replaced.handle), 0);
  EXPECT_EQ(host.close(removed.handle), 0);
}

TEST(ServerGone, ItIsWaitedForOnceAndNotByEachCallAndThread) {
  std::optional<ServedDirectory> served(std::in_place);
  HostOptions options = served->client();
  options.timeout = std::chrono::milliseconds(500);
  Host host(options);
  std::vector<Host::Opened> files;
  for (int i = 0; i < 20; ++i) {
    files.push_back(host.open("file" + std::to_string(i), kReadWrite | kFileOpenCreate, 0644));
    ASSERT_EQ(host.write(files.back().handle, 0, as_data("x")).bytes, 1U);
  }
  served.reset();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < 20; i += 2) {
        EXPECT_EQ(host.write(files[static_cast<std::size_t>(i)].handle, 0, as_data("x")).error, EIO);
        EXPECT_EQ(host.close(files[static_cast<std::size_t>(i)].handle), EIO);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, options.timeout);
  EXPECT_LT(took, 10 * options.timeout) << "20 calls of each thread would wait 20 times";
}

TEST(ServerRestarted, WhatCannotBeDecidedIsAnError) {
  const ServedDirectory served;
  Host host(served.client());
  served.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host.names().make_directory("lock", 0755), EIO);
  served.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host.names().make_node("fifo", FileNode::fifo, 0755), EIO);
  served.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host.open("file", kReadWrite | kFileOpenCreate | kFileOpenExclusive, 0644).error, EIO);
  // Another program has appended after the repeated append: it is unknown how much of that is in the file.
  const Host::Opened log = host.open("log", kAppend | kFileOpenCreate, 0644);
  std::ofstream(served.root() / "log", std::ios::app) << "another program's record, longer than ours";
  served.plan().kill_at(FaultPoint::call_made, 1);
  EXPECT_EQ(host.append(log.handle, as_data("ours")).error, EIO);
}

TEST(ServerLimits, AClientThatHasTooManyFilesIsToldAndOthersAreNot) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 160, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const ServedDirectory served;  // inherits the limit: 80 files, 20 per client
  ::setrlimit(RLIMIT_NOFILE, &before);
  std::ofstream(served.root() / "file") << "content";
  std::vector<std::unique_ptr<Host>> hosts;
  std::size_t all = 0;
  int error = 0;
  for (int clients = 0; clients < 5; ++clients) {
    Host& host = *hosts.emplace_back(std::make_unique<Host>(served.client()));
    std::size_t opened = 0;
    while ((error = host.open("file", kFileOpenRead).error) == 0) ++opened;
    EXPECT_EQ(error, clients < 4 ? EMFILE : ENFILE);
    EXPECT_EQ(opened, clients < 4 ? 20U : 0U);
    all += opened;
  }
  EXPECT_EQ(all, 80U);
  // The last client has no file open. Its other calls work, and it can open files once another client has ended.
  FileStatus status{};
  EXPECT_EQ(hosts.back()->names().status("file", true, status), 0);
  hosts.front().reset();
  while (hosts.back()->open("file", kFileOpenRead).error == ENFILE) std::this_thread::yield();
  EXPECT_EQ(served.deaths(), 0);
}

TEST(ServerDiskFull, WhatFitsIsWrittenAndTheRestIsAnError) {
  Child in_a_mount_of_its_own([] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return true;
    const test::TemporaryDirectory directory;
    if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0) return true;
    {
      const ServedDirectory served({.root = directory.path().string()});
      Host host(served.client());
      const Host::Opened file = host.open("file", kReadWrite | kFileOpenCreate, 0644);
      const Host::Opened log = host.open("log", kAppend | kFileOpenCreate, 0644);
      const auto data = pattern().bytes(3 << 20, 0);
      const Result first = host.write(file.handle, 0, data);
      EXPECT_GT(first.bytes, 0U);
      EXPECT_LT(first.bytes, data.size());
      EXPECT_EQ(host.write(file.handle, first.bytes, data).error, ENOSPC);
      EXPECT_EQ(host.append(log.handle, data).error, ENOSPC);
      const std::string content = content_of(directory.path() / "file");
      EXPECT_EQ(content.size(), first.bytes);
      EXPECT_TRUE(pattern().matches(as_data(content), 0));
      EXPECT_EQ(host.set_size(file.handle, 0), 0);
      EXPECT_EQ(host.append(log.handle, std::span(data).first(1000)).bytes, 1000U);
      EXPECT_EQ(served.deaths(), 0);
    }
    ::umount2(directory.path().c_str(), MNT_DETACH);
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(in_a_mount_of_its_own.wait(), 0);
}

}  // namespace
}  // namespace wherry::file
