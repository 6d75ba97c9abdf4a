// SPDX-License-Identifier: Apache-2.0
// What errors of the file servers say, each with its cause forced, as error_text_test.cc has it
// for connections.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include <wherry/wherry.hpp>

#include "file/client/host_connection.hpp"
#include "file/server/server.hpp"
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

class FileErrorText : public fault::FaultTest {};

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
  const auto text_against = [&](std::uint32_t version) {
    std::thread server = answer(version);
    const std::string text =
        text_of([&] { const StreamConnection connection(where, 0, {}, StreamConnection::kNoWait, Timeout(kTimeout)); });
    server.join();
    return text;
  };
  EXPECT_THAT(text_against(0), HasSubstr("; check that wherry serve listens there, and read its log"));
  EXPECT_THAT(text_against(layout::kFileVersion + 1), HasSubstr("; run wherry serve of the same version there"));
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
              HasSubstr("; a file of this machine has the paths kernel, cache and auto"));
}

/// What a server logs of a client that greets it so, and sends `after`.
std::string log_of_a_client(layout::FileHello hello, const layout::FileRequest* after) {
  const TemporaryDirectory directory;
  ::testing::internal::CaptureStderr();
  {
    Server server({.root = directory.path().string(), .listen = "wherry+shm://*:*"});
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
  EXPECT_THAT(log_of_a_client(hello, nullptr), HasSubstr("not a client of wherry serve"));
  hello.magic = layout::kFileMagic;
  EXPECT_THAT(log_of_a_client(hello, nullptr), HasSubstr("another version of Wherry"));
  hello.version = layout::kFileVersion;
  layout::FileRequest request{};
  request.name_bytes = UINT32_MAX;
  EXPECT_THAT(log_of_a_client(hello, &request), HasSubstr("malformed request"));
}

}  // namespace
}  // namespace wherry::file
