// SPDX-License-Identifier: Apache-2.0
// Clients that violate the protocol.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "base/machine.hpp"
#include "base/unique_fd.hpp"
#include "tests/common/answering_server.hpp"
#include "tests/common/pattern.hpp"
#include "tests/common/served_directory.hpp"

namespace wherry::file {
namespace {

using namespace layout;
using namespace std::chrono_literals;

constexpr std::uint32_t kReadWrite = kFileOpenRead | kFileOpenWrite;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class HostileClient : public ::testing::Test {
 protected:
  HostileClient() {
    std::ofstream(served_.outside() / "secret") << "secret";
    std::ofstream(served_.root() / "large") << std::string(8 << 20, 'l');
  }
  ~HostileClient() override {
    EXPECT_EQ(served_.deaths(), 0);
    EXPECT_EQ(content_of(served_.outside() / "secret"), "secret");
  }

  [[nodiscard]] static FileHello hello() {
    FileHello hello{};
    hello.version = kFileVersion;
    hello.magic = kFileMagic;
    return hello;
  }
  [[nodiscard]] static FileRequest request(FileCall call) {
    FileRequest request{};
    request.call = static_cast<std::uint32_t>(call);
    request.id = 1;
    return request;
  }
  /// A connection after the hello.
  [[nodiscard]] Stream greeted(std::size_t ring = 0) const {
    Stream stream = connect(served_.address(), {.ring_bytes = ring});
    stream.send(bytes_of(hello()));
    FileHello answer{};
    EXPECT_TRUE(stream.receive_all(std::as_writable_bytes(std::span(&answer, 1))).ok());
    return stream;
  }
  /// Expects that the server has closed this connection, after at most a few answers.
  static void expect_ended(Stream& stream) {
    std::vector<std::byte> buffer(100'000);
    Result result;
    do {
      result = stream.receive(buffer);
    } while (result.ok());
    EXPECT_TRUE(result.ended() || result.error == ECONNRESET) << result;
  }
  void expect_served() const {
    Host host(served_.client());
    const Host::Opened opened = host.open("good", kReadWrite | kFileOpenCreate, 0644);
    EXPECT_EQ(host.write(opened.handle, 0, as_data("good")).bytes, 4U);
    EXPECT_EQ(read_all(host, opened.handle), "good");
  }
  /// CPU time of the server so far, in seconds.
  [[nodiscard]] double cpu_seconds() const {
    std::ifstream file("/proc/" + std::to_string(served_.pid()) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  ServedDirectory served_;
};

TEST_F(HostileClient, NonsenseEndsItsOwnConnectionOnly) {
  FileHello other_version = hello();
  other_version.version = kFileVersion + 1;
  for (const FileHello& wrong : {other_version, FileHello{}}) {
    Stream stream = connect(served_.address());
    stream.send(bytes_of(wrong));
    expect_ended(stream);
  }
  std::vector<FileRequest> wrong(8, request(FileCall::status));
  wrong[0].call = 0;
  wrong[1].call = kFileCalls;
  wrong[2].name_bytes = kFileMaxName + 1;
  wrong[3].second_bytes = UINT32_MAX;
  wrong[4].repeated = 2;
  wrong[5].reserved[2] = 1;
  wrong[6] = request(FileCall::write);
  wrong[6].length = kFileMaxLength + 1;
  wrong[7] = request(FileCall::set_xattr);
  wrong[7].length = kFileMaxXattr + 1;
  for (const FileRequest& one : wrong) {
    Stream stream = greeted();
    stream.send(bytes_of(one));
    expect_ended(stream);
  }
  expect_served();
}

TEST_F(HostileClient, HandlesThatItDoesNotHaveAreRefused) {
  Host owner(served_.client());
  const Host::Opened opened = owner.open("large", kFileOpenRead);
  ASSERT_EQ(opened.error, 0);
  Stream stream = greeted();
  for (const std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, UINT64_MAX}) {
    for (const FileCall call : {FileCall::read, FileCall::write, FileCall::append, FileCall::flush, FileCall::seek,
                                FileCall::list, FileCall::close, FileCall::allocate}) {
      FileRequest asked = request(call);
      asked.handle = handle;
      asked.length = call == FileCall::write || call == FileCall::append ? 10 : 4096;
      stream.send(bytes_of(asked));
      if (call == FileCall::write || call == FileCall::append) stream.send(std::string_view("0123456789"));
      FileAnswer answer{};
      ASSERT_TRUE(stream.receive_all(std::as_writable_bytes(std::span(&answer, 1))).ok());
      EXPECT_EQ(answer.error, static_cast<std::uint32_t>(EBADF)) << asked.call;
      EXPECT_EQ(answer.last, 1U);
    }
  }
}

TEST_F(HostileClient, OffsetsBeyondAnyFileAreRefused) {
  Host host(served_.client());
  const Host::Opened opened = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  std::vector<std::byte> buffer(4096);
  for (const std::uint64_t offset : {UINT64_MAX, std::uint64_t{1} << 63, std::uint64_t{INT64_MAX} - 100}) {
    EXPECT_EQ(host.read(opened.handle, offset, buffer).error, EINVAL);
    EXPECT_EQ(host.write(opened.handle, offset, buffer).error, EINVAL);
    EXPECT_NE(host.allocate(opened.handle, 0, offset, 4096), 0);
    std::uint64_t found = 0;
    EXPECT_EQ(host.seek(opened.handle, offset, FileSeek::data, found), ENXIO);
  }
  EXPECT_EQ(host.set_size(opened.handle, UINT64_MAX), EINVAL);
}

TEST_F(HostileClient, OneThatDoesNotReadItsAnswersHoldsUpNobodyAndCostsNothing) {
  Stream stuck = greeted(4096);
  FileRequest open = request(FileCall::open);
  open.flags = kFileOpenRead;
  open.name_bytes = 5;
  stuck.send(bytes_of(open));
  stuck.send(std::string_view("large"));
  FileAnswer opened{};
  ASSERT_TRUE(stuck.receive_all(std::as_writable_bytes(std::span(&opened, 1))).ok());
  FileRequest read = request(FileCall::read);
  read.handle = opened.value;
  read.length = 8 << 20;
  // More requests than there is room for answers; further ones wait in the ring.
  for (int i = 0; i < 100; ++i) {
    if (!stuck.try_send(bytes_of(read)).ok()) break;
  }
  for (int i = 0; i < 20; ++i) expect_served();
  const double before = cpu_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu_seconds() - before, 0.15);
  // Once the client reads, all answers arrive.
  std::vector<std::byte> buffer(100'000);
  std::size_t received = 0;
  while (received < 16 << 20) {
    const Result result = stuck.receive(buffer);
    ASSERT_TRUE(result.ok()) << result;
    received += result.bytes;
  }
}

TEST_F(HostileClient, OneThatStopsWithinARequestCostsNothing) {
  Stream in_header = greeted();
  in_header.send(bytes_of(request(FileCall::status)).first(10));
  Host host(served_.client());
  const Host::Opened opened = host.open("file", kReadWrite | kFileOpenCreate, 0644);
  EXPECT_EQ(opened.error, 0);
  Stream in_data = greeted();
  FileRequest open = request(FileCall::open);
  open.flags = kReadWrite;
  open.name_bytes = 4;
  in_data.send(bytes_of(open));
  in_data.send(std::string_view("file"));
  std::vector<std::byte> answer(sizeof(FileAnswer) + sizeof(FileStatus));
  ASSERT_TRUE(in_data.receive_all(answer).ok());
  FileAnswer head{};
  std::memcpy(&head, answer.data(), sizeof head);
  FileRequest write = request(FileCall::write);
  write.handle = head.value;
  write.length = 1 << 20;
  in_data.send(bytes_of(write));
  in_data.send(std::string_view("only this"));
  expect_served();
  const double before = cpu_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu_seconds() - before, 0.15);
  expect_served();
}

/// An invalid answer of a server to `read` of 100 bytes.
struct WrongAnswer {
  FileAnswer head;
  std::size_t payload;
};

TEST(HostileServer, ItsAnswersAreCheckedAndItIsNotAskedForEver) {
  const FileAnswer good{.id = 1, .last = 1, .error = 0, .payload_bytes = 100, .value = 0, .position = 0};
  std::vector<WrongAnswer> wrong(6, {good, 100});
  wrong[0].head.id = 77;
  wrong[1].head.last = 2;
  wrong[2].head.error = 1 << 20;
  wrong[3] = {good, 200};
  wrong[3].head.payload_bytes = 200;
  wrong[4].head.payload_bytes = UINT32_MAX;
  wrong[5] = {good, 0};
  wrong[5].head.payload_bytes = wrong[5].head.last = 0;
  for (const WrongAnswer& one : wrong) {
    const AnsweringServer server(
        [&](const FileRequest&) -> AnsweringServer::Answer { return {one.head, std::vector<std::byte>(one.payload)}; });
    Host host({.address = server.address(), .timeout = 30ms});
    const Host::Opened opened = host.open("file", kFileOpenRead);
    ASSERT_EQ(opened.error, 0);
    std::array<std::byte, 300> buffer{};
    EXPECT_EQ(host.read(opened.handle, 0, std::span(buffer).first(100)).error, EIO);
    EXPECT_TRUE(std::all_of(buffer.begin() + 100, buffer.end(), [](std::byte b) { return b == std::byte{}; }));
  }
}

/// Claims to lend descriptors, and names some of its own that are not the file.
bool lend_wrongly(std::atomic<int>& port, std::uint64_t number, int lent) {
  Listener listener = listen("wherry+shm://*:*");
  port = listener.local().port.value_or(0);
  Stream stream = listener.accept();
  FileHello hello{};
  FileRequest request{};
  if (!stream.receive_all(std::as_writable_bytes(std::span(&hello, 1))).ok()) return false;
  hello.lends = 1;
  std::ranges::copy(own_boot_id(), hello.boot);
  stream.send(bytes_of(hello));
  while (stream.receive_all(std::as_writable_bytes(std::span(&request, 1))).ok()) {
    std::vector<std::byte> name(request.name_bytes);
    if (!name.empty() && !stream.receive_all(name).ok()) break;
    const auto call = static_cast<FileCall>(request.call);
    FileAnswer answer{.id = request.id, .last = 1, .error = 0, .payload_bytes = 0, .value = 1, .position = 0};
    if (call == FileCall::open) {
      answer.position = number == 0 ? static_cast<std::uint64_t>(lent) + 1 : number;
      answer.payload_bytes = sizeof(FileStatus);
    }
    if (call == FileCall::read) answer.payload_bytes = 100;
    stream.send(bytes_of(answer));
    if (answer.payload_bytes != 0) stream.send(std::vector<std::byte>(answer.payload_bytes, std::byte{0}));
  }
  return true;
}

TEST(HostileServer, DescriptorsThatAreNotOfTheFileAreNotUsed) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "other") << std::string(1000, 'o');
  const UniqueFd other(::open((directory.path() / "other").c_str(), O_RDONLY | O_CLOEXEC));
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{INT_MAX}, UINT64_MAX}) {
    SCOPED_TRACE(number);
    const SharedValue<std::atomic<int>> port;
    Child server([&] { return lend_wrongly(*port, number, other.get()); });
    while (*port == 0) std::this_thread::yield();
    {
      Host host({.address = "wherry+shm://0:" + std::to_string(*port), .timeout = 30ms});
      const Host::Opened opened = host.open("file", kFileOpenRead);
      ASSERT_EQ(opened.error, 0);
      std::vector<std::byte> buffer(100, std::byte{'x'});
      EXPECT_EQ(host.read(opened.handle, 0, buffer).bytes, 100U);
      EXPECT_EQ(buffer, std::vector<std::byte>(100));
    }
    EXPECT_EQ(server.wait(), 0);
  }
}

TEST_F(HostileClient, NoiseHarmsNobody) {
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 3;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> names{"large", "../secret", "/etc/passwd", ".", "a", "a/b", "..", "good"};
  for (int round = 0; round < 150; ++round) {
    Stream stream = greeted();
    for (int i = 0; i < 20; ++i) {
      FileRequest one{};
      const std::string& name = names[random() % names.size()];
      const std::string& second = names[random() % names.size()];
      one.call = static_cast<std::uint32_t>(1 + random() % (kFileCalls - 1));
      one.handle = random() % 3 == 0 ? random() : (std::uint64_t{1} << 32);
      one.offset = random() % 2 == 0 ? random() : random() % 10'000;
      one.length = random() % 5000;
      one.flags = static_cast<std::uint32_t>(random() % 1024);
      one.mode = 0755;
      one.repeated = static_cast<std::uint32_t>(random() % 2);
      one.name_bytes = static_cast<std::uint32_t>(name.size());
      one.second_bytes = static_cast<std::uint32_t>(second.size());
      if (random() % 40 == 0) one.reserved[0] = 1;
      if (!stream.send(bytes_of(one), 1s).ok() || !stream.send(name, 1s).ok() || !stream.send(second, 1s).ok()) break;
      const bool data = one.call == static_cast<std::uint32_t>(FileCall::write) ||
                        one.call == static_cast<std::uint32_t>(FileCall::append) ||
                        one.call == static_cast<std::uint32_t>(FileCall::set_xattr);
      if (data && !stream.send(Pattern(1).bytes(one.length), 1s).ok()) break;
      std::vector<std::byte> answers(10'000);
      (void)stream.try_receive(answers);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(served_.root())) std::filesystem::remove_all(entry);
  expect_served();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(served_.outside()), {}), 2);
}

/// The number of occurrences of `part` in `text`.
int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ServerWarnings, OfManyHostileClientsSomeAreNamedAndTheOthersCounted) {
  constexpr int kClients = 100;
  const test::TemporaryDirectory directory;
  ::testing::internal::CaptureStderr();
  {
    Server server({.root = directory.path().string(), .listen = "wherry+shm://*:*", .threads = 1});
    std::thread serving([&server] { server.run(); });
    for (int i = 0; i < kClients; ++i) {
      Stream stream = connect(server.address());
      stream.send(bytes_of(std::array<std::byte, sizeof(FileHello)>{}));
      std::byte nothing{};
      EXPECT_FALSE(stream.receive(std::span(&nothing, 1)).ok());
    }
    server.stop();
    serving.join();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  const int named = count_of(text, ": not a client of wherry serve\n");
  int left_out = 0;
  for (std::size_t at = 0; (at = text.find("wherry serve: ", at)) != std::string::npos; ++at) {
    int number = 0;
    char end = 0;
    if (std::sscanf(text.c_str() + at, "wherry serve: %d more lines were left ou%c", &number, &end) == 2) {
      left_out += number;
    }
  }
  EXPECT_GT(named, 0);
  EXPECT_GT(left_out, 0) << text;
  EXPECT_EQ(named + left_out, kClients) << text;
}

}  // namespace
}  // namespace wherry::file
