// SPDX-License-Identifier: Apache-2.0
// What errors of the card, its cache and the file servers say, each with its cause forced, as error_text_test.cc has it
// for connections.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include <wherry/wherry.hpp>

#include "base/scoped_environment.hpp"
#include "file/cache.hpp"
#include "file/card.hpp"
#include "file/card_server.hpp"
#include "file/host_connection.hpp"
#include "file/revocations_file.hpp"
#include "file/server.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/temporary_directory.hpp"
#include "tests/fault/error_text.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::file {
namespace {

using fault::kTimeout;
using fault::text_elsewhere;
using fault::text_of;
using test::TemporaryDirectory;
using ::testing::HasSubstr;

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit bound{most, most};
  if (::setrlimit(resource, &bound) != 0) throw std::system_error(errno, std::system_category(), "setrlimit");
}

const pid_t kSelf = ::getpid();  // also in its children

class FileErrorText : public fault::FaultTest {
 protected:
  ~FileErrorText() override {
    ::unlink(path().c_str());
    const RevocationsFile last(path());
  }

  /// Of a segment: there is none yet.
  [[nodiscard]] static std::string path() { return "/dev/shm/wherry-files-text-" + std::to_string(kSelf); }
  [[nodiscard]] static std::string make_text(const std::string& path) {
    return text_of([&] { const Card card({.path = path, .cache = kLeastCache}); });
  }
  /// What a card's maker hears that is another process.
  [[nodiscard]] static std::string make_text_after(const std::function<void()>& hindrance) {
    return text_elsewhere([where = path(), &hindrance] {
      hindrance();
      const Card card({.path = where, .cache = kLeastCache});
    });
  }
  [[nodiscard]] static std::string attach_text_after(const std::function<void()>& hindrance) {
    return text_elsewhere([where = path(), &hindrance] {
      hindrance();
      Cache cache;
      const Refusal refusal = cache.attach(where.c_str());
      throw Error(refusal.error, refusal.reason, where, refusal.advice);
    });
  }
};

TEST_F(FileErrorText, OfACacheThatCannotBeMadeNamesWhatIsMissing) {
  EXPECT_THAT(make_text("/proc/wherry"),
              HasSubstr("; the cache needs a tmpfs that this user may write to, such as /dev/shm"));
  EXPECT_THAT(make_text_after([] {
                ::signal(SIGXFSZ, SIG_IGN);
                limit(RLIMIT_FSIZE, 4096);
              }),
              HasSubstr("; the limit of file sizes (ulimit -f) may be lower; start a smaller cache (wherry card "
                        "--cache)"));
  EXPECT_THAT(make_text_after([] { refuse_calls({SYS_fallocate}, ENOSPC); }),
              HasSubstr("; make room in /dev/shm, or start a smaller cache (wherry card --cache)"));
  EXPECT_THAT(make_text_after([] { refuse_calls({SYS_linkat}, ENOENT); }),
              HasSubstr("; /proc must be mounted, and the directory be this user's to write to"));
  EXPECT_THAT(make_text_after([] { refuse_calls({SYS_inotify_init1}, EMFILE); }),
              HasSubstr("; raise fs.inotify.max_user_instances and max_user_watches (sysctl)"));
}

TEST_F(FileErrorText, OfANameThatIsNoCacheSaysSo) {
  const TemporaryDirectory directory;
  const std::string link = (directory.path() / "link").string();
  std::filesystem::create_symlink("/dev/null", link);
  EXPECT_THAT(make_text(link), HasSubstr("; remove it if it is another's, or use another WHERRY_JOB"));
}

TEST_F(FileErrorText, OfACardThatCannotBeEndedSaysSo) {
  Card card({.path = path(), .cache = kLeastCache});
  EXPECT_THAT(text_of([&] { card.run(-1); }), HasSubstr("; the descriptor that ends it cannot be waited for"));
}

TEST_F(FileErrorText, OfAttachingNamesTheLimit) {
  const Card card({.path = path(), .cache = kLeastCache});
  EXPECT_THAT(attach_text_after([] { limit(RLIMIT_NOFILE, 0); }),
              HasSubstr("; see whether /dev/shm is mounted, and descriptors are left (ulimit -n)"));
  EXPECT_THAT(attach_text_after([] { refuse_calls({SYS_mmap}, ENOMEM); }),
              HasSubstr("; give the process more address space (ulimit -v), or start a smaller cache"));
  const ScopedEnvironment job("WHERRY_JOB", "no/job");
  EXPECT_STREQ(Cache().attach().reason, "WHERRY_JOB or WHERRY_NODE is not valid");
}

TEST_F(FileErrorText, OfACardsServerNamesTheCause) {
  EXPECT_THAT(text_of([] { const CardServer server(path(), {}); }), HasSubstr("serve files from the card"));
  const Card card({.path = path(), .cache = kLeastCache});
  const auto serve_after = [](long call, int error) {
    return text_elsewhere([=] {
      refuse_calls({call}, error);
      const CardServer server(path(), {});
    });
  };
  EXPECT_THAT(serve_after(SYS_getrandom, EPERM), HasSubstr("; the kernel gives no random numbers"));
  EXPECT_THAT(serve_after(SYS_socket, EPERM), HasSubstr("; this system does not permit socket"));
  EXPECT_THAT(text_elsewhere([] {
                refuse_calls({SYS_clone, SYS_clone3}, EAGAIN);
                const CardServer server(path(), {});
              }),
              HasSubstr("; allow more processes (ulimit -u, pids.max)"));
}

TEST_F(FileErrorText, OfStartingACardNamesTheLimit) {
  EXPECT_THAT(text_elsewhere([] {
                refuse_calls({SYS_clone, SYS_clone3, SYS_fork, SYS_vfork}, EAGAIN);
                ensure_card("/bin/true");
              }),
              HasSubstr("; allow more processes (ulimit -u)"));
  EXPECT_THAT(text_elsewhere([] {
                refuse_calls({SYS_mmap}, ENOMEM);
                ensure_card("/bin/true");
              }),
              HasSubstr("; allow more memory (ulimit -v)"));
}

TEST_F(FileErrorText, OfAServerThatIsNoneSaysWhatAnswers) {
  Listener listener = listen(address());
  const std::string where = listener.local().to_string();
  const auto answer = [&](std::uint32_t version) {
    return std::thread([&listener, version] {
      Stream stream = listener.accept(kTimeout);
      layout::FileHello hello{};
      (void)stream.receive_all(std::as_writable_bytes(std::span(&hello, 1)), kTimeout);
      hello.version = version;
      if (version != 0) (void)stream.send(std::as_bytes(std::span(&hello, 1)), kTimeout);
      stream.close();
    });
  };
  const auto text_against = [&](std::uint32_t version, const Cache::CardServer* card = nullptr) {
    std::thread server = answer(version);
    const std::string text = text_of(
        [&] { const HostConnection connection(where, 0, {}, HostConnection::kNoWait, Timeout(kTimeout), card); });
    server.join();
    return text;
  };
  EXPECT_THAT(text_against(0), HasSubstr("; see what the server there says; is it wherry serve?"));
  EXPECT_THAT(text_against(layout::kFileVersion + 1),
              HasSubstr("; let wherry serve, of the same version, listen there"));
  Cache::CardServer card{.port = 0, .process = ::getpid(), .token = 1, .proof = 2};
  EXPECT_THAT(text_against(layout::kFileVersion, &card),
              HasSubstr("; what answers there is not the card; start the card again"));
  card.process = 1;
  EXPECT_THAT(text_against(0, &card), HasSubstr("; another process listens there; end it, or start the card again"));
}

TEST_F(FileErrorText, OfAServerThatCannotStartItsThreadsNamesTheLimit) {
  const TemporaryDirectory directory;
  EXPECT_THAT(text_elsewhere([&] {
                refuse_calls({SYS_clone, SYS_clone3}, EAGAIN);
                const Server server({.root = directory.path().string(), .listen = "wherry+shm://*:*"});
              }),
              HasSubstr("; allow more processes (ulimit -u, pids.max)"));
}

TEST_F(FileErrorText, OfAPathThatAFileHasNotNamesThoseThatItHas) {
  const files::Options host{.path = files::Path::host};
  EXPECT_THAT(text_of([&] { (void)files::open("/dev/null", O_RDONLY, 0, host); }),
              HasSubstr("; a file of this machine has no path host: ask for local, comp, os or auto"));
}

/// What a server logs of a client that greets it so, and sends `after`.
std::string log_of_a_client(layout::FileHello hello, const layout::FileRequest* after, Cache* of_card = nullptr) {
  const TemporaryDirectory directory;
  ::testing::internal::CaptureStderr();
  {
    Server server(
        {.root = directory.path().string(), .listen = "wherry+shm://*:*", .cache = of_card, .secrets = {.token = 7}});
    std::thread thread([&] { server.run(); });
    Stream stream = connect(server.address(), {}, kTimeout);
    (void)stream.send(std::as_bytes(std::span(&hello, 1)), kTimeout);
    if (after != nullptr) (void)stream.send(std::as_bytes(std::span(after, 1)), kTimeout);
    std::byte byte{};
    while (stream.receive(std::span(&byte, 1), kTimeout).ok()) continue;
    server.stop();
    thread.join();
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(FileErrorText, OfAClientThatIsNoneStandsInTheServersLog) {
  layout::FileHello hello{};
  EXPECT_THAT(log_of_a_client(hello, nullptr), HasSubstr("it is no client of wherry serve"));
  hello.magic = layout::kFileMagic;
  EXPECT_THAT(log_of_a_client(hello, nullptr), HasSubstr("it is of another version of Wherry"));
  hello.version = layout::kFileVersion;
  const Card card({.path = path(), .cache = kLeastCache});
  Cache cache;
  ASSERT_FALSE(cache.attach(path().c_str()));
  EXPECT_THAT(log_of_a_client(hello, nullptr, &cache), HasSubstr("it is no client of this card"));
  layout::FileRequest request{};
  request.name_bytes = UINT32_MAX;
  EXPECT_THAT(log_of_a_client(hello, &request), HasSubstr("a request that makes no sense"));
}

}  // namespace
}  // namespace wherry::file
