// SPDX-License-Identifier: Apache-2.0
//
// A hostile client of the host's file server: whatever bytes arrive, the session goes on or ends, reads and writes no
// memory but its own, and changes nothing outside of its directory.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "file/server/server_session.hpp"
#include "tests/common/refused_calls.hpp"
#include "tests/fuzz/input.hpp"

namespace wherry::file {
namespace {

namespace fs = std::filesystem;
using fuzz::Input;
using namespace layout;

/// A directory to serve, deep enough that a path which climbs out still ends where it is noticed.
class Playground {
 public:
  Playground() {
    const fs::path base = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    top_ = base / ("wherry-file-fuzz-" + std::to_string(::getpid()));
    root_ = top_ / "1/2/3/root";
    fs::create_directories(root_);
    log::set_level(log::Level::error);
    // No input is to fill the memory.
    const rlimit most{.rlim_cur = 4 << 20, .rlim_max = 4 << 20};
    ::setrlimit(RLIMIT_FSIZE, &most);
    std::signal(SIGXFSZ, SIG_IGN);
    refuse_calls({SYS_fallocate}, EOPNOTSUPP);
  }
  Playground(const Playground&) = delete;
  Playground& operator=(const Playground&) = delete;
  ~Playground() { fs::remove_all(top_); }

  [[nodiscard]] const fs::path& root() const { return root_; }
  void prepare() const {
    for (const auto& entry : fs::directory_iterator(root_)) {
      std::error_code ignored;
      fs::permissions(entry.path(), fs::perms::owner_all, ignored);
      fs::remove_all(entry.path());
    }
    std::ofstream(root_ / "a") << "content";
    fs::create_directory(root_ / "d");
    fs::create_symlink("../../..", root_ / "up");
    fs::create_symlink(top_, root_ / "top");
  }
  /// One path from the top to the directory, and nothing beside it.
  [[nodiscard]] bool nothing_escaped() const {
    for (fs::path place = top_; place != root_; place = fs::directory_iterator(place)->path()) {
      if (std::distance(fs::directory_iterator(place), {}) != 1) return false;
    }
    return true;
  }

 private:
  fs::path top_;
  fs::path root_;
};

constexpr std::array<std::string_view, 16> kNames{"a",  "b",    "d", "d/e",    "up", "up/x", "top",    "top/x",
                                                  "..", "../x", "/", "d/../a", ".",  "d/",   "user.x", "trusted.x"};

template <class T>
void put(std::vector<std::byte>& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// A request that makes sense, mostly.
/// @param watcher  the number of a client that hears of recalls
void put_request(std::vector<std::byte>& to, std::uint64_t watcher, Input& input) {
  FileRequest request{};
  request.call = input.number<std::uint8_t>() % (kFileCalls + 1);
  request.id = input.number<std::uint8_t>();
  request.handle = std::uint64_t{input.number<std::uint8_t>()} % 4 << 32 | input.number<std::uint8_t>() % 3;
  request.offset = input.one_in(4) ? input.number<std::uint64_t>() : input.number<std::uint16_t>();
  request.length = input.one_in(8) ? input.number<std::uint64_t>() : input.number<std::uint16_t>();
  request.flags = input.number<std::uint16_t>() % 2048;
  request.mode = input.number<std::uint16_t>();
  const bool locks = request.call >= static_cast<std::uint32_t>(FileCall::open_locks) &&
                     request.call <= static_cast<std::uint32_t>(FileCall::get_lock) && !input.one_in(8);
  if (locks) {
    request.flags %= 2;
    request.mode %= 4;
  }
  const auto call = static_cast<FileCall>(request.call);
  if (call == FileCall::await_recalls && !input.one_in(4)) request.offset = 0;
  const bool by_number = call == FileCall::delegate || call == FileCall::give_back ||
                         call == FileCall::acknowledge_recalls || call == FileCall::delegate_write;
  if (by_number) request.offset = watcher;
  if (call == FileCall::append) request.flags = 0;
  if (call == FileCall::write) request.flags %= 2;
  request.repeated = input.number<std::uint8_t>() % 2;
  const std::string_view name = kNames.at(input.number<std::uint8_t>() % kNames.size());
  const FileCopy copy{
      .handle = std::uint64_t{input.number<std::uint8_t>()} % 4 << 32 | input.number<std::uint8_t>() % 3,
      .offset = input.number<std::uint16_t>()};
  const std::string_view target(reinterpret_cast<const char*>(&copy), sizeof copy);
  const bool copies = request.call == static_cast<std::uint32_t>(FileCall::copy);
  const std::string_view second = copies ? target : kNames.at(input.number<std::uint8_t>() % kNames.size());
  request.name_bytes = static_cast<std::uint32_t>(name.size());
  request.second_bytes = static_cast<std::uint32_t>(second.size());
  put(to, request);
  for (const std::string_view text : {name, second}) {
    const auto bytes = std::as_bytes(std::span(text));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  const bool data = request.call == static_cast<std::uint32_t>(FileCall::write) ||
                    request.call == static_cast<std::uint32_t>(FileCall::append) ||
                    request.call == static_cast<std::uint32_t>(FileCall::set_xattr);
  if (data && request.length <= UINT16_MAX) to.resize(to.size() + request.length, std::byte{'w'});
}

std::vector<std::byte> conversation(std::uint64_t watcher, Input& input) {
  std::vector<std::byte> bytes;
  FileHello hello{};
  hello.version = kFileVersion;
  hello.magic = kFileMagic;
  if (!input.one_in(16)) put(bytes, hello);
  for (int i = 0; i < 24 && !input.empty(); ++i) {
    if (input.one_in(8)) {
      const auto raw = std::as_bytes(input.take(input.number<std::uint8_t>()));
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    } else {
      put_request(bytes, watcher, input);
    }
  }
  return bytes;
}

struct Ends {
  Stream client;
  Stream server;
};

Ends connect_pair() {
  Listener listener = listen("wherry+inproc://*:*", {.ring_bytes = 1 << 16});
  Connecting connecting = start_connect(listener.local().to_string(), {.ring_bytes = 4096});
  Ends ends;
  ends.server = listener.accept();
  while (!ends.client.is_open()) {
    if (auto stream = connecting.try_finish()) ends.client = std::move(*stream);
  }
  return ends;
}

/// The client sends, and reads what it gets, or for some time does not.
void play(ServerSession& session, Stream& client, std::span<const std::byte> bytes, Input& input) {
  std::vector<std::byte> answers(8192);
  for (int turns = 0; turns < 10'000; ++turns) {
    if (!bytes.empty()) {
      const std::size_t most = input.one_in(4) ? input.number<std::uint8_t>() + 1U : bytes.size();
      bytes = bytes.subspan(client.try_send(bytes.first(std::min(most, bytes.size()))).bytes);
    }
    const ServerSession::Next next = session.advance();
    if (next == ServerSession::Next::over) return;
    if (input.one_in(3)) continue;
    const Result got = client.try_receive(answers);
    if (bytes.empty() && next == ServerSession::Next::when_readable && !got.ok()) return;
  }
}

}  // namespace
}  // namespace wherry::file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry::file;
  static const Playground playground;
  playground.prepare();
  wherry::fuzz::Input input(std::span(data, size));
  {
    wherry::file::Service service{
        .tree = Tree(playground.root().string()),
        .budget = HandleBudget(64, 16),
        .terms = Terms{.read_only = input.one_in(8), .lends = input.one_in(2), .delegates = input.one_in(4)},
        .hello = {},
        .at = {}};
    Delegations::Client watcher(service.delegations);
    Ends ends = connect_pair();
    const std::vector<std::byte> bytes = conversation(watcher.number(), input);
    ServerSession session(std::move(ends.server), service);
    play(session, ends.client, bytes, input);
  }
  if (!playground.nothing_escaped()) std::abort();
  return 0;
}
