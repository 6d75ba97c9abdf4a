// SPDX-License-Identifier: Apache-2.0
#include "file/os_client.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/log.hpp"
#include "file/cached_file_systems.hpp"
#include "file/per_process.hpp"
#include "file/process_cache.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileRequest;
using layout::FileStatus;

/// A card that does not answer is tried again after this; a new one at once.
constexpr std::chrono::seconds kPause{1};

/// The file's path from the root directory on. Whether it still names the file is seen by what is opened.
std::string name_of(int descriptor) {
  std::string name(layout::kFileMaxName + 2, '\0');
  const ssize_t bytes = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), name.data(), name.size());
  if (bytes <= 1 || name[0] != '/') return {};
  name.resize(static_cast<std::size_t>(bytes));
  return name.substr(1);
}

/// Whether the card serves it: it opens no others, whose file systems may hang.
bool is_served(int descriptor) {
  const int mode = ::fcntl(descriptor, F_GETFL);
  struct ::statfs system{};
  return mode >= 0 && (mode & (O_APPEND | O_DIRECT | O_PATH)) == 0 && (mode & O_ACCMODE) != O_WRONLY &&
         ::fstatfs(descriptor, &system) == 0 && can_be_cached(system.f_type);
}

/// A connection's memory counts as a file: beyond the limit the kernel would kill this process for it.
bool has_low_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < layout::kFileMaxLength;
}

}  // namespace

/// Once for all that happens to this client.
void OsClient::say(const char* what) {
  if (!std::exchange(said_, true)) log::write(log::Level::warning, std::string("files: ") + what);
}

/// @param since  when it was asked: a card that is stopped, or waits for a disk that does not answer, is not asked
/// again
///               until ten times as long has gone by
void OsClient::lose(Clock::time_point since) {
  connection_.reset();
  const auto now = Clock::now();
  if (now - since < timeout_) return say("the card's process is gone; this process reads by itself");
  put_off(10 * (now - since));
}

void OsClient::put_off(Clock::duration pause) {
  failed_ = token_;
  next_try_ = Clock::now() + pause;
  say("the card's process does not answer; this process reads by itself");
}

bool OsClient::connected() {
  if (connection_ && !origin_.inherited()) return true;
  connection_.reset();
  const Cache::CardServer server = cache_.card_server();
  if (server.port == 0) {
    say("no card's process serves files; this process reads by itself");
    return false;
  }
  if (server.token == failed_ && Clock::now() < next_try_) return false;
  // The card serves those of its table only.
  if (!cache_.is_client()) return false;
  if (has_low_limit()) return false;
  const auto begin = Clock::now();
  token_ = server.token;
  try {
    const std::string address = "wherry+shm://" + std::to_string(own_node()) + ":" + std::to_string(server.port);
    connection_.emplace(address, 0, at_, HostConnection::kNoWait, timeout_, &server);
    connection_->set_timeout(timeout_);
    origin_ = Origin();
    generation_ = {fork_generation(), generation_.connection + 1};
    return true;
  } catch (const Error&) {
    // It has died, or has no descriptors left, or another process listens there.
  }
  put_off(kPause + 10 * (Clock::now() - begin));
  return false;
}

OsClient& process_os_client() {
  struct Own {
    OsClient client{process_cache(false)};
  };
  static constinit PerProcess<Own> own;
  return own.get().client;
}

/// Sends, and receives with `receive`. False: the connection broke.
template <class Receive>
bool OsFile::ask(OsClient& client, FileRequest request, Receive receive) {
  const auto begin = OsClient::Clock::now();
  request.handle = handle_;
  if (client.connection_->send(request, {}, {}, Buffers({}), 0) && receive(*client.connection_)) return true;
  client.lose(begin);
  return false;
}

/// With the client's lock held: whether the file is open at the other end of a living connection.
bool OsFile::opened(OsClient& client) {
  if (!client.connected()) return false;
  if (generation_ == client.generation_) return handle_ != 0;
  generation_ = client.generation_;
  handle_ = 0;
  return open(client);
}

bool OsFile::open(OsClient& client) {
  const std::string name = name_of(descriptor_);
  struct ::stat own{};
  if (name.empty() || name.size() > layout::kFileMaxName || !is_served(descriptor_) ||
      ::fstat(descriptor_, &own) != 0 || !S_ISREG(own.st_mode)) {
    return false;
  }
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::open);
  request.flags = layout::kFileOpenRead;
  FileStatus status{};
  const auto begin = OsClient::Clock::now();
  std::optional<layout::FileAnswer> answer;
  if (client.connection_->send(request, name, {}, Buffers({}), 0)) {
    answer = client.connection_->receive(std::as_writable_bytes(std::span(&status, 1)));
  }
  if (!answer) {
    client.lose(begin);
    return false;
  }
  if (answer->error != 0) return false;
  handle_ = answer->value;
  if (status.device == own.st_dev && status.inode == own.st_ino) return true;
  // Another file has the name, or the name means something else there.
  close(client);
  return false;
}

void OsFile::close(OsClient& client) {
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::close);
  (void)ask(client, request, [](HostConnection& to) { return to.receive(std::span<std::byte>()).has_value(); });
  handle_ = 0;
}

OsFile::~OsFile() {
  if (handle_ == 0) return;
  OsClient& client = client_();
  const std::lock_guard lock(client.mutex_);
  if (client.connection_ && !client.origin_.inherited() && generation_ == client.generation_) close(client);
}

std::optional<Result> OsFile::read(std::uint64_t offset, std::span<const iovec> into) {
  OsClient& client = client_();
  const std::lock_guard lock(client.mutex_);
  if (!opened(client)) return {};
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::read);
  request.offset = offset;
  request.length = Buffers(into).bytes();
  if (request.length > layout::kFileMaxLength) return {};
  HostConnection::Read read{};
  const bool answered = ask(client, request, [&](HostConnection& connection) {
    const auto got = connection.receive_data(Buffers(into), request.length);
    if (got) read = *got;
    return got.has_value();
  });
  if (!answered) return {};
  return read.error != 0 ? Result::failure(read.error, read.bytes) : Result::moved(read.bytes);
}

}  // namespace wherry::file
