// SPDX-License-Identifier: Apache-2.0
// A ticket gives one file, once, with the access that it was made for, until its maker ends it.
#include "file/direct/direct_host.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "file/server/tickets.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;

/// By the kernel, which finds out what is accessible.
bool copy(void* to, const void* from, std::size_t bytes) {
  const iovec source{const_cast<void*>(from), bytes};
  const iovec destination{to, bytes};
  return ::process_vm_writev(::getpid(), &source, 1, &destination, 1, 0) == static_cast<ssize_t>(bytes);
}

class TicketsOfFiles : public ::testing::Test {
 protected:
  TicketsOfFiles() { std::ofstream(served_.root() / "file") << "content"; }

  [[nodiscard]] Host::Handle open(std::uint32_t flags) {
    const Host::Opened opened = maker_.open("file", flags);
    EXPECT_EQ(opened.error, 0);
    return opened.handle;
  }
  [[nodiscard]] FileTicket ticket(Host::Handle handle, std::uint32_t flags) {
    FileTicket made{};
    EXPECT_EQ(maker_.tickets().make(handle, flags, made), 0);
    return made;
  }
  [[nodiscard]] std::unique_ptr<DirectHost::File> opened_by(const FileTicket& by) {
    std::unique_ptr<DirectHost::File> file;
    EXPECT_EQ(direct_.open(by, file), 0);
    return file;
  }
  static std::string read(DirectHost::File& file) {
    std::string text(100, '\0');
    const Result got = file.read(0, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(got.ok()) << got.to_string();
    return text.substr(0, got.bytes);
  }

  ServedDirectory served_{{.lends = false}};
  Host maker_{served_.client()};
  DirectHost direct_{served_.address(), {.may_wait = [] { return true; }, .copy = copy}};
};

TEST_F(TicketsOfFiles, OpenTheFileWhateverBecameOfItsName) {
  const FileTicket by = ticket(open(kFileOpenRead), kFileOpenRead);
  std::filesystem::remove(served_.root() / "file");
  std::ofstream(served_.root() / "file") << "another";
  EXPECT_EQ(read(*opened_by(by)), "content");
}

TEST_F(TicketsOfFiles, AreUsedOnce) {
  const FileTicket by = ticket(open(kFileOpenRead), kFileOpenRead);
  const auto first = opened_by(by);
  std::unique_ptr<DirectHost::File> second;
  EXPECT_EQ(direct_.open(by, second), ESTALE);
  EXPECT_EQ(direct_.open(FileTicket(), second), ESTALE);
}

TEST_F(TicketsOfFiles, GiveNoMoreAccessThanTheyWereMadeFor) {
  const Host::Handle both = open(kFileOpenRead | kFileOpenWrite);
  const auto reader = opened_by(ticket(both, kFileOpenRead));
  EXPECT_EQ(reader->write(0, as_data("xyz")).error, EBADF);
  const auto writer = opened_by(ticket(both, kFileOpenWrite));
  EXPECT_TRUE(writer->write(0, as_data("C")).ok());
  std::string room(3, '\0');
  EXPECT_EQ(writer->read(0, std::as_writable_bytes(std::span(room))).error, EBADF);
  EXPECT_EQ(content_of(served_.root() / "file"), "Content");
}

TEST_F(TicketsOfFiles, AreNotMadeForAccessThatTheirMakerLacks) {
  FileTicket none{};
  EXPECT_EQ(maker_.tickets().make(open(kFileOpenRead), kFileOpenWrite, none), EACCES);
  EXPECT_EQ(maker_.tickets().make(open(kFileOpenWrite), kFileOpenRead, none), EACCES);
  EXPECT_EQ(maker_.tickets().make(open(kFileOpenRead), 0, none), EINVAL);
  EXPECT_EQ(maker_.tickets().make(1, kFileOpenRead, none), EBADF);
  const Host::Opened directory = maker_.open(".", kFileOpenRead | kFileOpenDirectory);
  EXPECT_EQ(maker_.tickets().make(directory.handle, kFileOpenRead, none), EINVAL);
}

TEST_F(TicketsOfFiles, TellWhetherOtherClientsWaitedForTheServer) {
  std::ofstream(served_.root() / "large") << std::string(std::size_t{8} << 20, 'x');
  std::ofstream(served_.root() / "out") << "";
  const auto ticket_of = [&](const char* name, std::uint32_t flags) {
    const Host::Opened opened = maker_.open(name, flags);
    EXPECT_EQ(opened.error, 0);
    return ticket(opened.handle, flags);
  };
  const auto alone = opened_by(ticket_of("out", kFileOpenWrite));
  EXPECT_TRUE(alone->write(0, as_data("alone")).ok());
  EXPECT_FALSE(direct_.is_shared());

  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&, by = ticket_of("large", kFileOpenRead)] {
      DirectHost host(served_.address(), {.may_wait = [] { return true; }, .copy = copy});
      std::unique_ptr<DirectHost::File> file;
      ASSERT_EQ(host.open(by, file), 0);
      std::vector<std::byte> room(std::size_t{8} << 20);
      while (!done.load()) ASSERT_TRUE(file->read(0, room).ok());
    });
  }
  const auto reader = opened_by(ticket(open(kFileOpenRead), kFileOpenRead));
  while (!direct_.is_shared()) ASSERT_TRUE(alone->write(0, as_data("beside")).ok());
  do {
    EXPECT_EQ(read(*reader), "content");
  } while (!direct_.is_shared());
  done.store(true);
  for (std::thread& other : others) other.join();
}

TEST_F(TicketsOfFiles, EndWithTheHandleTheyWereMadeOf) {
  const Host::Handle handle = open(kFileOpenRead);
  const auto file = opened_by(ticket(handle, kFileOpenRead));
  const FileTicket unused = ticket(handle, kFileOpenRead);
  EXPECT_EQ(read(*file), "content");
  EXPECT_EQ(maker_.close(handle), 0);
  std::string room(3, '\0');
  EXPECT_EQ(file->read(0, std::as_writable_bytes(std::span(room))).error, ESTALE);
  std::unique_ptr<DirectHost::File> other;
  EXPECT_EQ(direct_.open(unused, other), ESTALE);
}

TEST_F(TicketsOfFiles, ChangeNothingOnceTheirMakerHasEndedThem) {
  const Host::Handle handle = open(kFileOpenWrite);
  std::vector<std::unique_ptr<DirectHost::File>> writers;
  writers.push_back(opened_by(ticket(handle, kFileOpenWrite)));
  std::atomic<bool> begun{false};
  std::thread writer([&] {
    const std::string data(100'000, 'w');
    while (writers[0]->write(0, as_data(data)).ok()) begun = true;
  });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(maker_.tickets().end(handle), 0);
  ASSERT_EQ(::truncate((served_.root() / "file").c_str(), 0), 0);
  writer.join();
  EXPECT_EQ(content_of(served_.root() / "file"), "");
  // Later tickets still work.
  EXPECT_TRUE(opened_by(ticket(handle, kFileOpenWrite))->write(0, as_data("new")).ok());
  EXPECT_EQ(content_of(served_.root() / "file"), "new");
}

TEST_F(TicketsOfFiles, TellIfAFileThatTheyWroteHasSetIdBits) {
  const auto file = opened_by(ticket(open(kFileOpenWrite), kFileOpenWrite));
  EXPECT_TRUE(file->write(0, as_data("new")).ok());
  EXPECT_FALSE(file->has_set_id());
  ASSERT_EQ(::chmod((served_.root() / "file").c_str(), 02755), 0);
  EXPECT_TRUE(file->write(0, as_data("new")).ok());
  EXPECT_TRUE(file->has_set_id());
}

/// Whether a flushed file still counts as written to, so that its maker asks a server about a loss.
class AFlushedFile : public TicketsOfFiles {
 protected:
  bool counts_as_written(bool has_tickets) {
    HostOptions options = served_.client();
    options.timeout = std::chrono::milliseconds(1);
    Host maker(options);
    const Host::Handle handle = maker.open("file", kFileOpenWrite).handle;
    FileTicket made{};
    EXPECT_EQ(maker.tickets().make(handle, kFileOpenWrite, made), 0);
    EXPECT_EQ(has_tickets ? 0 : maker.tickets().end(handle), 0);
    EXPECT_EQ(maker.flush(handle, false), 0);
    served_.keep_dead();
    return maker.check_loss(handle) != 0;
  }
};

TEST_F(AFlushedFile, CountsAsWrittenToWhileATicketMayWrite) { EXPECT_TRUE(counts_as_written(true)); }

TEST_F(AFlushedFile, DoesNotCountAsWrittenToOnceItsTicketsHaveEnded) { EXPECT_FALSE(counts_as_written(false)); }

TEST_F(TicketsOfFiles, AreBoundedInNumberUntilTheyAreUsed) {
  const Host::Handle handle = open(kFileOpenRead);
  std::vector<FileTicket> made(1);
  while (maker_.tickets().make(handle, kFileOpenRead, made.back()) == 0) made.emplace_back();
  EXPECT_LE(made.size() - 1, Tickets::kMost);
  FileTicket one{};
  EXPECT_EQ(maker_.tickets().make(handle, kFileOpenRead, one), ENFILE);
  const auto used = opened_by(made.front());
  EXPECT_EQ(maker_.tickets().make(handle, kFileOpenRead, one), 0);
}

/// Two pages, the second of which is not accessible.
class HalfABuffer {
 public:
  static constexpr std::size_t kPage = 4096;
  HalfABuffer() : pages_(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_EQ(::mprotect(static_cast<std::byte*>(pages_) + kPage, kPage, PROT_NONE), 0);
  }
  HalfABuffer(const HalfABuffer&) = delete;
  HalfABuffer& operator=(const HalfABuffer&) = delete;
  ~HalfABuffer() { ::munmap(pages_, 2 * kPage); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(pages_), 2 * kPage}; }

 private:
  void* pages_;
};

TEST_F(TicketsOfFiles, AreGoodForMoreReadsAfterOneIntoABufferThatIsNotAccessible) {
  std::ofstream(served_.root() / "file") << std::string(100'000, 'x');
  const auto file = opened_by(ticket(open(kFileOpenRead), kFileOpenRead));
  const HalfABuffer half;
  EXPECT_EQ(file->read(0, half.bytes()).error, EFAULT);
  EXPECT_EQ(read(*file), std::string(100, 'x'));
  EXPECT_EQ(file->read(0, half.bytes().first(HalfABuffer::kPage)).bytes, HalfABuffer::kPage);
}

TEST_F(TicketsOfFiles, WriteNothingThatIsNotAccessible) {
  const auto file = opened_by(ticket(open(kFileOpenWrite), kFileOpenWrite));
  const HalfABuffer half;
  EXPECT_EQ(file->write(0, half.bytes()).error, ECONNRESET);
  EXPECT_TRUE(direct_.is_broken());
  EXPECT_LE(content_of(served_.root() / "file").size(), HalfABuffer::kPage);
}

TEST_F(TicketsOfFiles, MakeTheirConnectionWarmInEachDirectionByBytes) {
  const auto file = opened_by(ticket(open(kFileOpenWrite), kFileOpenWrite));
  EXPECT_TRUE(file->write(0, as_data("x")).ok());
  EXPECT_FALSE(direct_.is_warm(true));
  const std::string data(std::size_t{1} << 20, 'x');
  while (!direct_.is_warm(true)) ASSERT_TRUE(file->write(0, as_data(data)).ok());
  EXPECT_FALSE(direct_.is_warm(false));
}

TEST_F(TicketsOfFiles, EndWithTheServer) {
  const auto file = opened_by(ticket(open(kFileOpenRead), kFileOpenRead));
  served_.kill();
  std::string room(3, '\0');
  EXPECT_EQ(file->read(0, std::as_writable_bytes(std::span(room))).error, ECONNRESET);
  EXPECT_TRUE(direct_.is_broken());
}

TEST_F(TicketsOfFiles, AreNotWaitedForAtAStoppedServerLongerThanTheCallerWill) {
  std::atomic<bool> may_wait{true};
  DirectHost host(served_.address(), {.may_wait = [&] { return may_wait.load(); }, .copy = copy});
  std::unique_ptr<DirectHost::File> file;
  ASSERT_EQ(host.open(ticket(open(kFileOpenRead), kFileOpenRead), file), 0);
  ::kill(served_.pid(), SIGSTOP);
  while (content_of("/proc/" + std::to_string(served_.pid()) + "/stat").find(") T ") == std::string::npos)
    std::this_thread::yield();
  std::thread reader([&] {
    std::string room(3, '\0');
    EXPECT_EQ(file->read(0, std::as_writable_bytes(std::span(room))).error, ECONNRESET);
  });
  may_wait = false;
  reader.join();
  ::kill(served_.pid(), SIGCONT);
}

}  // namespace
}  // namespace wherry::file
