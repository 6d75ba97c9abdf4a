// SPDX-License-Identifier: Apache-2.0
// What moves no file's data.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "file/client/host_exchange.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;

/// What the server would end the connection for, and a name that is missing.
int problem_of(std::string_view name, std::string_view second, bool has_file) {
  if (name.size() > layout::kFileMaxName || second.size() > layout::kFileMaxName) return ENAMETOOLONG;
  return name.empty() && !has_file ? ENOENT : 0;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

/// `file`: null for a call that is asked of a name.
int Host::call(const Asked& asked, File* file, std::span<std::byte> payload, layout::FileAnswer* answer) {
  if (const int error = problem_of(asked.name, asked.second, file != nullptr); error != 0) return error;
  return exchange(asked, file, [&](HostConnection& connection) -> std::optional<int> {
    const auto got = connection.receive(payload);
    if (!got) return {};
    if (answer != nullptr) *answer = *got;
    return static_cast<int>(got->error);
  });
}

/// The same for an answer of any length up to `most`.
int Host::call(const Asked& asked, File* file, std::vector<std::byte>& payload, std::size_t most) {
  if (const int error = problem_of(asked.name, asked.second, file != nullptr); error != 0) return error;
  return exchange(asked, file, [&](HostConnection& connection) -> std::optional<int> {
    const auto got = connection.receive(payload, most);
    if (!got) return {};
    return static_cast<int>(got->error);
  });
}

int Host::call(FileCall call, std::string_view name, std::string_view second, std::uint32_t flags, std::uint32_t mode,
               std::uint64_t offset, std::span<std::byte> payload) {
  const std::lock_guard lock(mutex_);
  Asked asked{.name = name, .second = second};
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags = flags;
  asked.request.mode = mode;
  asked.request.offset = offset;
  return this->call(asked, nullptr, payload);
}

/// Of an open file. `then` is called with it after a call that succeeds.
template <class Then>
int Host::call(FileCall call, Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length,
               std::span<std::byte> payload, Then then) {
  const std::lock_guard lock(mutex_);
  const auto file = find(handle);
  if (file == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags = flags;
  asked.request.offset = offset;
  asked.request.length = length;
  if (call == FileCall::set_size || call == FileCall::allocate) file->unflushed = true;
  layout::FileAnswer answer{};
  const int error = this->call(asked, file.get(), payload, &answer);
  if (error == 0) then(*file, answer);
  return error;
}

namespace {
constexpr auto kNothing = [](const auto& /*file*/, const layout::FileAnswer& /*answer*/) {};
}

int Host::status(Handle handle, layout::FileStatus& status) {
  if (const auto lent = lend(handle)) return lent->status(status);
  return call(FileCall::status, handle, 0, 0, 0, bytes_of(status), kNothing);
}

int Host::status(std::string_view name, bool follow, layout::FileStatus& status) {
  return call(FileCall::status, name, {}, follow ? 0 : layout::kFileLookNoFollow, 0, 0, bytes_of(status));
}

int Host::delegate(Handle handle, std::uint64_t client, layout::FileStatus& status,
                   std::chrono::milliseconds& kept_for) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return EBUSY;
  const auto file = find(handle);
  if (file == nullptr) return EBADF;
  if (!connection_ && Clock::now() < delegates_from_) return ECONNRESET;
  Asked asked{.once = connection_ != nullptr};
  asked.request.call = static_cast<std::uint32_t>(FileCall::delegate);
  asked.request.offset = client;
  layout::FileAnswer answer{};
  const int error = call(asked, file.get(), bytes_of(status), &answer);
  if (error == ECONNRESET) delegates_from_ = Clock::now() + kTryAgain;
  if (error == 0) kept_for = std::chrono::milliseconds(std::min(answer.value, layout::kFileDelegationMs));
  return error;
}

int Host::file_system(std::string_view name, layout::FileSystemStatus& status) {
  return call(FileCall::file_system, name, {}, 0, 0, 0, bytes_of(status));
}

int Host::file_system(Handle handle, layout::FileSystemStatus& status) {
  return call(FileCall::file_system, handle, 0, 0, 0, bytes_of(status), kNothing);
}

int Host::set_size(Handle handle, std::uint64_t size) {
  return call(FileCall::set_size, handle, 0, size, 0, {},
              [&](File& file, const layout::FileAnswer&) { file.end = size; });
}

int Host::set_size(std::string_view name, std::uint64_t size) { return call(FileCall::set_size, name, {}, 0, 0, size); }

int Host::set_mode(std::string_view name, std::uint32_t mode) { return call(FileCall::set_mode, name, {}, 0, mode); }

int Host::set_mode(Handle handle, std::uint32_t mode) {
  if (const auto lent = read_only_ ? nullptr : lend(handle)) return lent->set_mode(mode);
  const std::lock_guard lock(mutex_);
  const auto file = find(handle);
  if (file == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_mode);
  asked.request.mode = mode;
  return call(asked, file.get());
}

int Host::set_owner(Handle handle, std::uint32_t user, std::uint32_t group) {
  if (const auto lent = read_only_ ? nullptr : lend(handle)) return lent->set_owner(user, group);
  return call(FileCall::set_owner, handle, 0, user, group, {}, kNothing);
}

int Host::set_owner(std::string_view name, bool follow, std::uint32_t user, std::uint32_t group) {
  const std::lock_guard lock(mutex_);
  Asked asked{.name = name};
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_owner);
  asked.request.flags = follow ? 0 : layout::kFileLookNoFollow;
  asked.request.offset = user;
  asked.request.length = group;
  return call(asked, nullptr);
}

int Host::set_times(Handle handle, const layout::FileTimes& times) {
  if (const auto lent = read_only_ ? nullptr : lend(handle)) return lent->set_times(times);
  const std::lock_guard lock(mutex_);
  const auto file = find(handle);
  if (file == nullptr) return EBADF;
  Asked asked{.second = text_of(std::as_bytes(std::span(&times, 1)))};
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_times);
  return call(asked, file.get());
}

int Host::set_times(std::string_view name, bool follow, const layout::FileTimes& times) {
  const auto second = text_of(std::as_bytes(std::span(&times, 1)));
  return call(FileCall::set_times, name, second, follow ? 0 : layout::kFileLookNoFollow);
}

Result Host::copy(Handle from, std::uint64_t offset, Handle to, std::uint64_t to_offset, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  const auto file = find(from);
  const auto target = find(to);
  if (file == nullptr || target == nullptr) return Result::failure(EBADF);
  if (const int lost = told_of_loss(*target); lost != 0) return Result::failure(lost);
  Asked asked{.target = target.get(), .copy = {.handle = 0, .offset = to_offset}};
  asked.request.call = static_cast<std::uint32_t>(FileCall::copy);
  asked.request.offset = offset;
  asked.request.length = std::min(length, layout::kFileMaxLength);
  target->unflushed = true;
  layout::FileAnswer answer{};
  const int error = call(asked, file.get(), {}, &answer);
  if (answer.value > asked.request.length) return Result::failure(EIO);
  return error != 0 && answer.value == 0 ? Result::failure(error) : Result::moved(answer.value);
}

int Host::allocate(Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length) {
  return call(FileCall::allocate, handle, flags, offset, length, {}, kNothing);
}

int Host::seek(Handle handle, std::uint64_t offset, layout::FileSeek what, std::uint64_t& found) {
  return call(FileCall::seek, handle, static_cast<std::uint32_t>(what), offset, 0, {},
              [&](const File&, const layout::FileAnswer& answer) { found = answer.position; });
}

int Host::make_directory(std::string_view name, std::uint32_t mode) {
  return call(FileCall::make_directory, name, {}, 0, mode);
}

int Host::make_node(std::string_view name, layout::FileNode type, std::uint32_t mode) {
  return call(FileCall::make_node, name, {}, static_cast<std::uint32_t>(type), mode);
}

int Host::remove(std::string_view name, bool directory) {
  return call(FileCall::remove, name, {}, directory ? layout::kFileRemoveDirectory : 0);
}

int Host::rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  const std::lock_guard lock(mutex_);
  Asked asked{.name = from, .second = to};
  asked.request.call = static_cast<std::uint32_t>(FileCall::rename);
  asked.request.flags = flags;
  apply_noted_renames();
  renaming_.emplace(from, to, (flags & layout::kFileRenameExchange) != 0);
  const int error = call(asked, nullptr);
  for (const std::shared_ptr<File>& file : files_) {
    if (file && error == 0) renaming_->apply(file->name);
  }
  renaming_.reset();
  return error;
}

void Host::note_rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  {
    const std::lock_guard lock(noted_mutex_);
    noted_.emplace_back(from, to, (flags & layout::kFileRenameExchange) != 0);
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) apply_noted_renames();
}

/// Before a name is added or used: a later file of an old name must not follow.
void Host::apply_noted_renames() {
  const std::lock_guard lock(noted_mutex_);
  for (const Renaming& renaming : noted_) {
    for (const std::shared_ptr<File>& file : files_) {
      if (file) renaming.apply(file->name);
    }
  }
  noted_.clear();
}

void Host::Renaming::apply(std::string& name) const {
  const auto moved = [&](std::string_view old, std::string_view now) {
    const bool is_there = name.starts_with(old) && (name.size() == old.size() || name[old.size()] == '/');
    if (is_there) name.replace(0, old.size(), now);
    return is_there;
  };
  if (!moved(from, to) && exchanged) moved(to, from);
}

int Host::link(std::string_view from, std::string_view to) { return call(FileCall::link, from, to); }

int Host::symlink(std::string_view name, std::string_view target) { return call(FileCall::symlink, name, target); }

int Host::read_link(std::string_view name, std::string& target) {
  const std::lock_guard lock(mutex_);
  Asked asked{.name = name};
  asked.request.call = static_cast<std::uint32_t>(FileCall::read_link);
  std::vector<std::byte> payload;
  const int error = call(asked, nullptr, payload, layout::kFileMaxName + 1);
  if (error == 0) target = text_of(payload);
  return error;
}

}  // namespace wherry::file
