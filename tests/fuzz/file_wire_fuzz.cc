// SPDX-License-Identifier: Apache-2.0
//
// Hostile clients of the host's file server. They use what the answers tell them, so that most requests get far.
// Whatever bytes arrive, the session goes on or ends, reads and writes no memory but its own, and changes nothing
// outside of its directory.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
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
      if (!entry.is_symlink(ignored)) fs::permissions(entry.path(), fs::perms::owner_all, ignored);
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

/// What clients have learned from answers. Real clients share some of it: tickets, and the number for recalls.
struct Known {
  std::vector<FileTicket> tickets{};
  std::vector<FileIdentity> files{};
  std::uint64_t watcher = 0;
};

template <class T>
T any_of(const std::vector<T>& from, Input& input) {
  if (from.empty() || input.one_in(16)) return T{};
  return from.at(input.number<std::uint8_t>() % from.size());
}

template <class T>
std::string text_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Mostly the file, which most calls need.
std::string any_name(Input& input) {
  const std::uint8_t which = input.number<std::uint8_t>();
  return std::string(which < 160 ? kNames.front() : kNames.at(which % kNames.size()));
}

std::uint64_t any_number(Input& input) {
  return input.one_in(8) ? input.number<std::uint64_t>() : input.number<std::uint16_t>();
}

FileTime any_time(Input& input) {
  constexpr std::array<std::uint32_t, 4> kNanoseconds{kFileTimeNow, kFileTimeKept, 0, 999'999'999};
  return {.seconds = input.number<std::int32_t>(),
          .nanoseconds = kNanoseconds.at(input.number<std::uint8_t>() % kNanoseconds.size()),
          .reserved = 0};
}

/// A request, with its parts.
struct Message {
  FileRequest header{};
  std::string name{};
  std::string second{};
  std::size_t data = 0;  ///< bytes
};

/// What one client may use in its requests.
struct OpenHandles {
  std::vector<std::uint64_t> files{};
  std::vector<std::uint64_t> locks{};
};

bool is_call(const FileRequest& header, std::initializer_list<FileCall> calls) {
  return std::ranges::find(calls, static_cast<FileCall>(header.call)) != calls.end();
}

/// The second part that the call expects.
std::string second_part(const FileRequest& header, const Known& known, const OpenHandles& handles, Input& input) {
  switch (static_cast<FileCall>(header.call)) {
    case FileCall::set_times:
      return text_of(FileTimes{.accessed = any_time(input), .modified = any_time(input)});
    case FileCall::copy:
      return text_of(FileCopy{.handle = any_of(handles.files, input), .offset = any_number(input)});
    case FileCall::open_ticket:
      return text_of(any_of(known.tickets, input));
    case FileCall::give_back:
    case FileCall::acknowledge_recalls: {
      std::string all;
      for (std::uint8_t i = input.number<std::uint8_t>() % 4; i > 0; --i) all += text_of(any_of(known.files, input));
      return all;
    }
    case FileCall::get_xattr:
    case FileCall::set_xattr:
    case FileCall::remove_xattr:
      return input.one_in(4) ? "trusted.x" : "user.x";
    case FileCall::rename:
    case FileCall::link:
    case FileCall::symlink:
      return any_name(input);
    default:
      return {};
  }
}

/// Flags that the call knows, in any combination.
std::uint32_t flags_of(const FileRequest& header, Input& input) {
  switch (static_cast<FileCall>(header.call)) {
    case FileCall::open: {
      constexpr std::array<std::uint32_t, 4> kKinds{kFileOpenRead, kFileOpenRead | kFileOpenWrite,
                                                    kFileOpenRead | kFileOpenWrite | kFileOpenCreate,
                                                    kFileOpenWrite | kFileOpenAppend | kFileOpenCreate};
      if (input.one_in(4)) return input.number<std::uint16_t>() & kFileOpenAll;
      return kKinds.at(input.number<std::uint8_t>() % kKinds.size());
    }
    case FileCall::write: {
      constexpr std::array<std::uint32_t, 4> kKinds{0, kFileWriteKept, kFileWriteKept | kFileWriteByUser,
                                                    kFileWriteKept | kFileWriteByUser | kFileWriteByOutsider};
      return kKinds.at(input.number<std::uint8_t>() % kKinds.size());
    }
    case FileCall::append:
      return 0;
    case FileCall::set_lock:
    case FileCall::get_lock:
      return input.one_in(2) ? input.number<std::uint8_t>() & 7 : 0;
    case FileCall::make_ticket:
      return kFileOpenRead | (input.number<std::uint8_t>() & kFileOpenWrite);
    case FileCall::seek:
    case FileCall::make_node:
      return 1 + input.number<std::uint8_t>() % 2;
    case FileCall::open_locks:
      return input.number<std::uint8_t>() & kFileLockWhole;
    case FileCall::remove:
    case FileCall::list:
    case FileCall::flush:
      return input.number<std::uint8_t>() & 1;
    default:
      return input.number<std::uint8_t>() & 7;
  }
}

/// Whether the call takes a name if it has no handle.
bool takes_name(const FileRequest& header) {
  return header.handle == kFileNoHandle ||
         is_call(header, {FileCall::make_directory, FileCall::remove, FileCall::rename, FileCall::link,
                          FileCall::symlink, FileCall::read_link, FileCall::make_node});
}

/// The call, or one that makes first what it needs.
FileCall possible(FileCall call, const Known& known, const OpenHandles& handles) {
  constexpr std::array kOfLocks{FileCall::set_lock, FileCall::get_lock};
  constexpr std::array kOfFiles{FileCall::close,       FileCall::read,           FileCall::write,
                                FileCall::append,      FileCall::flush,          FileCall::allocate,
                                FileCall::seek,        FileCall::list,           FileCall::copy,
                                FileCall::open_locks,  FileCall::delegate,       FileCall::make_ticket,
                                FileCall::end_tickets, FileCall::delegate_write, FileCall::return_write};
  if (std::ranges::find(kOfLocks, call) != kOfLocks.end() && handles.locks.empty()) call = FileCall::open_locks;
  if (call == FileCall::open_ticket && known.tickets.empty()) call = FileCall::make_ticket;
  if (std::ranges::find(kOfFiles, call) != kOfFiles.end() && handles.files.empty()) call = FileCall::open;
  return call;
}

/// A request that makes sense, mostly.
Message any_request(const Known& known, const OpenHandles& handles, Input& input) {
  Message made;
  FileRequest& header = made.header;
  header.call = 1 + input.number<std::uint8_t>() % (kFileCalls - 1);
  if (!input.one_in(8))
    header.call = static_cast<std::uint32_t>(possible(static_cast<FileCall>(header.call), known, handles));
  header.id = input.number<std::uint16_t>();
  const bool locks = is_call(header, {FileCall::set_lock, FileCall::get_lock});
  const bool is_named = is_call(header, {FileCall::open, FileCall::status, FileCall::set_size, FileCall::set_mode,
                                         FileCall::set_times, FileCall::set_owner, FileCall::file_system}) &&
                        input.one_in(2);
  if (locks && !input.one_in(8))
    header.handle = any_of(handles.locks, input);
  else if (!is_named && !is_call(header, {FileCall::open_ticket}))
    header.handle = any_of(handles.files, input);
  header.offset = any_number(input);
  header.length = any_number(input);
  header.mode = locks ? input.number<std::uint8_t>() % 4 : input.number<std::uint16_t>();
  header.flags = flags_of(header, input);
  header.repeated = input.number<std::uint8_t>() % 2;
  if (is_call(header, {FileCall::await_recalls, FileCall::delegate, FileCall::delegate_write, FileCall::give_back,
                       FileCall::acknowledge_recalls}))
    header.offset = known.watcher;
  if (takes_name(header)) {
    made.name = any_name(input);
    if (!is_call(header, {FileCall::open, FileCall::status})) header.handle = kFileNoHandle;
  }
  made.second = second_part(header, known, handles, input);
  if (is_call(header, {FileCall::write, FileCall::append, FileCall::set_xattr})) made.data = header.length % 20'000;
  if (locks && input.one_in(2)) header.offset = header.length = 0;  // the whole file
  if (made.data != 0 || header.length > kFileMaxAppend) header.length = made.data;
  return made;
}

/// One of the request's fields is any number.
void damage(FileRequest& header, Input& input) {
  const std::size_t at = input.number<std::uint8_t>() % sizeof header;
  reinterpret_cast<std::uint8_t*>(&header)[at] = input.number<std::uint8_t>();
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

/// A client and its session at the server.
class Peer {
 public:
  Peer(Service& service, Known& known, Input& input)
      : known_(known), input_(input), ends_(connect_pair()), session_(std::move(ends_.server), service) {
    FileHello hello{};
    hello.version = kFileVersion;
    hello.magic = kFileMagic;
    hello.client = input.number<std::uint8_t>() % 3;
    hello.process = input.number<std::uint8_t>() % 3;
    if (!input.one_in(32)) put(out_, hello);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] bool is_over() const { return is_over_; }
  /// Whether it waits for recalls. Another request would end the session.
  [[nodiscard]] bool watches() const { return watches_; }

  void send() {
    if (input_.one_in(24)) {
      const auto raw = std::as_bytes(input_.take(input_.number<std::uint8_t>()));
      out_.insert(out_.end(), raw.begin(), raw.end());
      return;
    }
    Message message = any_request(known_, handles_, input_);
    message.header.name_bytes = static_cast<std::uint32_t>(message.name.size());
    message.header.second_bytes = static_cast<std::uint32_t>(message.second.size());
    if (input_.one_in(24)) damage(message.header, input_);
    watches_ = is_call(message.header, {FileCall::await_recalls}) && message.header.offset != 0;
    asked_.push_back(message.header);
    put(out_, message.header);
    for (const std::string& text : {message.name, message.second}) {
      const auto bytes = std::as_bytes(std::span(text));
      out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    out_.resize(out_.size() + message.data, std::byte{'w'});
  }

  /// Lets both sides do what they can, or less.
  void advance() {
    std::array<std::byte, 8192> answers{};
    for (int turns = 0; turns < 2000 && !is_over_; ++turns) {
      const std::size_t most = input_.one_in(4) ? input_.number<std::uint8_t>() + 1U : out_.size();
      const Result sent = ends_.client.try_send(std::span(out_).first(std::min(most, out_.size())));
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent.bytes));
      const ServerSession::Next next = session_.advance();
      is_over_ = next == ServerSession::Next::over;
      if (input_.one_in(16)) return;
      const Result got = ends_.client.try_receive(answers);
      in_.insert(in_.end(), answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(got.bytes));
      learn();
      if (out_.empty() && next != ServerSession::Next::at_once && got.bytes == 0) return;
    }
  }

 private:
  /// Takes whole answers.
  void learn() {
    if (!is_greeted_ && in_.size() >= sizeof(FileHello)) {
      in_.erase(in_.begin(), in_.begin() + sizeof(FileHello));
      is_greeted_ = true;
    }
    FileAnswer answer{};
    while (is_greeted_ && in_.size() >= sizeof answer) {
      std::memcpy(&answer, in_.data(), sizeof answer);
      if (in_.size() < sizeof answer + answer.payload_bytes) return;
      if (!asked_.empty() && answer.error == 0)
        learn(asked_.front(), answer, std::span(in_).subspan(sizeof answer, answer.payload_bytes));
      if (answer.last != 0 && !asked_.empty()) asked_.pop_front();
      watches_ = watches_ && answer.last == 0;
      in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(sizeof answer + answer.payload_bytes));
    }
  }

  void learn(const FileRequest& asked, const FileAnswer& answer, std::span<const std::byte> payload) {
    if (is_call(asked, {FileCall::open, FileCall::open_ticket})) handles_.files.push_back(answer.value);
    if (is_call(asked, {FileCall::open_locks})) handles_.locks.push_back(answer.value);
    if (is_call(asked, {FileCall::close})) {
      std::erase(handles_.files, asked.handle);
      std::erase(handles_.locks, asked.handle);
    }
    if (is_call(asked, {FileCall::await_recalls})) known_.watcher = answer.value;
    if (FileTicket ticket{}; is_call(asked, {FileCall::make_ticket}) && payload.size() == sizeof ticket) {
      std::memcpy(&ticket, payload.data(), sizeof ticket);
      known_.tickets.push_back(ticket);
    }
    if (FileStatus status{}; is_call(asked, {FileCall::status, FileCall::open}) && payload.size() == sizeof status) {
      std::memcpy(&status, payload.data(), sizeof status);
      known_.files.push_back({.device = status.device, .inode = status.inode});
    }
  }

  Known& known_;
  Input& input_;
  Ends ends_;
  ServerSession session_;
  std::vector<std::byte> out_{};
  std::vector<std::byte> in_{};
  std::deque<FileRequest> asked_{};
  OpenHandles handles_{};
  bool is_greeted_ = false;
  bool watches_ = false;
  bool is_over_ = false;
};

/// Three clients, so that tickets, delegations and locks of one are met by another.
void play(Service& service, Input& input) {
  Known known;
  std::array<Peer, 3> peers{Peer(service, known, input), Peer(service, known, input), Peer(service, known, input)};
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    Peer& peer = peers.at(input.number<std::uint8_t>() % peers.size());
    if (!peer.is_over() && (!peer.watches() || input.one_in(32))) peer.send();
    if (input.one_in(4)) continue;
    for (Peer& one : peers) one.advance();
  }
  for (Peer& one : peers) one.advance();
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
        .terms = Terms{.read_only = input.one_in(8), .lends = input.one_in(2), .delegates = !input.one_in(4)},
        .hello = {},
        .at = {}};
    play(service, input);
  }
  if (!playground.nothing_escaped()) std::abort();
  return 0;
}
