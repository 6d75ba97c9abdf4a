// SPDX-License-Identifier: Apache-2.0
// Connecting, again if need be, and what moves data.
#include "file/host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "file/host_exchange.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileRequest;
using layout::FileStatus;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 2ms;
constexpr std::chrono::milliseconds kLongestPause = 200ms;

bool is_same(const FileStatus& one, const FileStatus& other) {
  const bool born = one.has_birth != 0 && other.has_birth != 0;
  return one.device == other.device && one.inode == other.inode &&
         (!born || std::memcmp(&one.born, &other.born, sizeof one.born) == 0);
}

iovec buffer_of(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

Host::Host(HostOptions options) : options_(std::move(options)) {
  connect();
  server_ = connection_->server();
  read_only_ = server_.read_only != 0;
}

void Host::connect() { connection_.emplace(options_.address, options_.ring_bytes, options_.at); }

/// Returns 0 once there is a server and all files are open there that could be opened again, or EIO.
int Host::reconnect(Clock::time_point deadline) {
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::string problem = "the server ends its connections";
    try {
      // Not at once: the server may end a connection each time.
      std::this_thread::sleep_for(pause);
      connect();
      pass(options_.at, FaultPoint::connected);
      const layout::FileHello& hello = connection_->server();
      const bool other_boot = !std::ranges::equal(hello.boot, server_.boot);
      server_ = hello;
      const auto again = [&](std::optional<File>& file) {
        if (file && other_boot) file->lost = std::exchange(file->unflushed, false);
        return !file || reopen(*file);
      };
      if (Clock::now() < deadline && std::ranges::all_of(files_, again)) return 0;
    } catch (const Error& error) {
      problem = error.what();
    }
    connection_.reset();
    if (Clock::now() < deadline) continue;
    log::write(log::Level::warning, "the host's files are out of reach: " + problem);
    return EIO;
  }
}

/// False: the connection broke. While a rename is not answered the file may have either name.
bool Host::reopen(File& file) {
  if (file.stale) return true;
  std::optional<bool> found = reopen(file, file.name);
  if (found && !*found && renaming_) {
    std::string name = file.name;
    renaming_->apply(name);
    if (name != file.name) found = reopen(file, name);
  }
  if (!found) return false;
  file.stale = !*found;
  pass(options_.at, FaultPoint::reopened);
  return true;
}

/// Whether the file of this name is the same; empty: the connection broke.
std::optional<bool> Host::reopen(File& file, const std::string& name) {
  FileRequest request{};
  request.call = static_cast<std::uint32_t>(FileCall::open);
  request.flags = file.flags;
  FileStatus status{};
  if (!connection_->send(request, name, {}, Buffers({}), 0)) return {};
  const auto answer = connection_->receive(std::as_writable_bytes(std::span(&status, 1)));
  if (!answer) return {};
  if (answer->error != 0) return false;
  file.handle = answer->value;
  if (is_same(file.status, status)) return true;
  FileRequest close{};
  close.call = static_cast<std::uint32_t>(FileCall::close);
  close.handle = answer->value;
  if (!connection_->send(close, {}, {}, Buffers({}), 0) || !connection_->receive(std::span<std::byte>())) return {};
  return false;
}

Host::File* Host::find(Handle handle) {
  const std::uint64_t index = handle & UINT32_MAX;
  if (index >= files_.size() || !files_[index] || files_[index]->number != handle >> 32) return nullptr;
  return &*files_[index];
}

Host::Opened Host::open(std::string_view name, std::uint32_t flags, std::uint32_t mode) {
  const std::lock_guard lock(mutex_);
  Opened opened;
  Asked asked{.name = name};
  asked.request.call = static_cast<std::uint32_t>(FileCall::open);
  asked.request.flags = flags;
  asked.request.mode = mode;
  layout::FileAnswer answer{};
  opened.error = call(asked, nullptr, std::as_writable_bytes(std::span(&opened.status, 1)), &answer);
  if (opened.error != 0) return opened;
  File file{.name = std::string(name)};
  file.flags = flags & ~(layout::kFileOpenCreate | layout::kFileOpenExclusive | layout::kFileOpenTruncate);
  file.handle = answer.value;
  file.status = opened.status;
  file.end = opened.status.size;
  file.number = ++opened_;
  auto place = std::ranges::find_if(files_, [](const auto& taken) { return !taken; });
  if (place == files_.end()) place = files_.emplace(files_.end());
  opened.handle = std::uint64_t{file.number} << 32 | static_cast<std::uint64_t>(place - files_.begin());
  *place = std::move(file);
  return opened;
}

int Host::close(Handle handle) {
  const std::lock_guard lock(mutex_);
  File* const file = find(handle);
  if (file == nullptr) return EBADF;
  const int lost = told_of_loss(*file);
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::close);
  const int error = call(asked, file);
  files_[handle & UINT32_MAX].reset();
  // A server that no longer has it has it closed.
  return lost != 0 || error == ESTALE ? lost : error;
}

int Host::told_of_loss(File& file) { return std::exchange(file.lost, false) ? EIO : 0; }

Result Host::read(Handle handle, std::uint64_t offset, std::span<const iovec> into) {
  const std::lock_guard lock(mutex_);
  File* const file = find(handle);
  if (file == nullptr) return Result::failure(EBADF);
  const std::uint64_t wanted = Buffers(into).bytes();
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::read);
  asked.request.offset = offset;
  asked.request.length = std::min(wanted, layout::kFileMaxLength);
  HostConnection::Read read{};
  const int error = exchange(asked, file, [&](HostConnection& connection) -> std::optional<int> {
    const auto got = connection.receive_data(Buffers(into), asked.request.length);
    if (!got) return {};
    read = *got;
    return 0;
  });
  if (error != 0) return Result::failure(error);
  return read.error != 0 && read.bytes == 0 ? Result::failure(read.error) : Result::moved(read.bytes);
}

/// The bytes moved count also beside an error, which the next call meets again.
Result Host::put(Handle handle, FileCall call, std::uint64_t offset, std::span<const iovec> from) {
  const std::lock_guard lock(mutex_);
  File* const file = find(handle);
  if (file == nullptr) return Result::failure(EBADF);
  if (const int lost = told_of_loss(*file); lost != 0) return Result::failure(lost);
  const bool append = call == FileCall::append;
  Asked asked{.data = from};
  asked.data_bytes = std::min(Buffers(from).bytes(), append ? layout::kFileMaxAppend : layout::kFileMaxLength);
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.offset = append ? file->end : offset;
  asked.request.length = asked.data_bytes;
  layout::FileAnswer answer{};
  file->unflushed = true;
  const int error = this->call(asked, file, {}, &answer);
  if (answer.value > asked.data_bytes) return Result::failure(EIO);
  if (append && answer.position != 0) file->end = answer.position;
  return error != 0 && answer.value == 0 ? Result::failure(error) : Result::moved(answer.value);
}

Result Host::write(Handle handle, std::uint64_t offset, std::span<const iovec> from) {
  return put(handle, FileCall::write, offset, from);
}

Result Host::append(Handle handle, std::span<const iovec> from) { return put(handle, FileCall::append, 0, from); }

Result Host::read(Handle handle, std::uint64_t offset, std::span<std::byte> into) {
  const iovec buffer = buffer_of(into);
  return read(handle, offset, std::span(&buffer, 1));
}

Result Host::write(Handle handle, std::uint64_t offset, std::span<const std::byte> from) {
  const iovec buffer = buffer_of(from);
  return write(handle, offset, std::span(&buffer, 1));
}

Result Host::append(Handle handle, std::span<const std::byte> from) {
  const iovec buffer = buffer_of(from);
  return append(handle, std::span(&buffer, 1));
}

int Host::flush(Handle handle, bool data_only) {
  const std::lock_guard lock(mutex_);
  File* const file = find(handle);
  if (file == nullptr) return EBADF;
  if (const int lost = told_of_loss(*file); lost != 0) return lost;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::flush);
  asked.request.flags = data_only ? layout::kFileFlushDataOnly : 0;
  const int error = call(asked, file);
  // A file whose flush failed is told so once, as the kernel does.
  if (error == 0) file->unflushed = false;
  return std::exchange(file->lost, false) ? EIO : error;
}

}  // namespace wherry::file
