// SPDX-License-Identifier: Apache-2.0
#include "file/mount/local_connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "base/not_cancelled.hpp"
#include "file/client/lent_file.hpp"

namespace wherry::file::mount {
namespace {

using layout::FileAnswer;
using layout::FileCall;

/// The rights of a process to files: users, groups, capabilities, their user namespace, seccomp, and the label of a
/// security module.
std::string rights_of(const std::string& process) {
  static constexpr std::array<std::string_view, 5> kKinds{"Uid:", "Gid:", "Groups:", "CapEff:", "Seccomp:"};
  std::string rights;
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (std::ranges::any_of(kKinds, [&](std::string_view kind) { return line.starts_with(kind); }))
      rights += line + '\n';
  }
  std::string label;
  std::ifstream module("/proc/" + process + "/attr/current");
  std::getline(module, label);
  rights += label + '\n';
  std::array<char, 64> name{};
  const ssize_t length = ::readlink(("/proc/" + process + "/ns/user").c_str(), name.data(), name.size());
  return length <= 0 ? std::string() : rights.append(name.data(), static_cast<std::size_t>(length));
}

bool has_own_rights(std::int64_t process) {
  const std::string rights = rights_of(std::to_string(process));
  return !rights.empty() && rights == rights_of("self");
}

std::vector<std::byte> gathered(Buffers data, std::uint64_t bytes) {
  std::vector<std::byte> all;
  while (all.size() < bytes) {
    const auto part = data.front(bytes - all.size());
    if (part.empty()) break;
    all.insert(all.end(), part.begin(), part.end());
    data.skip(part.size());
  }
  return all;
}

UniqueFd lent_directory(const StreamConnection& stream) {
  const std::uint64_t number = stream.server().root;
  if (number == 0 || number > INT32_MAX || stream.lender() < 0) return {};
  UniqueFd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, stream.lender(), static_cast<int>(number - 1), 0)));
  struct stat found{};
  const bool is_directory = taken.valid() && ::fstat(taken.get(), &found) == 0 && S_ISDIR(found.st_mode) &&
                            (::fcntl(taken.get(), F_GETFL) & O_PATH) != 0;
  return is_directory ? std::move(taken) : UniqueFd();
}

}  // namespace

std::unique_ptr<HostConnection> LocalConnection::instead_of(std::unique_ptr<StreamConnection> stream, Shared& shared) {
  UniqueFd directory = lent_directory(*stream);
  UniqueFd own = LentFile::process(::getpid());
  if (!directory.valid() || !own.valid() || !has_own_rights(stream->process())) return stream;
  // If a sandbox forbids what Tree needs, the server serves the requests.
  Tree tree(std::move(directory));
  if (!tree.open(".", O_RDONLY | O_DIRECTORY, 0).valid()) return stream;
  return std::unique_ptr<HostConnection>(
      new LocalConnection(std::move(stream), std::move(tree), std::move(own), shared));
}

LocalConnection::LocalConnection(std::unique_ptr<StreamConnection> stream, Tree tree, UniqueFd own, Shared& shared)
    : stream_(std::move(stream)),
      own_(std::move(own)),
      terms_{.read_only = stream_->server().read_only != 0, .lends = true, .delegates = false},
      tree_(std::move(tree)),
      handles_(shared.budget),
      calls_(tree_, handles_, terms_, shared.delegations, nullptr, nullptr) {}

std::uint64_t LocalConnection::adopt(int descriptor, bool appends) {
  Handles::Room room(handles_);
  UniqueFd own(room.error() == 0 ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1);
  return own.valid() ? room.add({.backing = std::make_unique<Backing>(std::move(own)), .appends = appends}) : 0;
}

/// A pidfd is readable once its process has ended.
bool LocalConnection::has_server() const {
  pollfd server{stream_->lender(), POLLIN, 0};
  return ::poll(&server, 1, 0) == 0;
}

bool LocalConnection::send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                           std::uint64_t data_bytes) {
  const NotCancelled here;
  if (!has_server()) return false;
  request.name_bytes = static_cast<std::uint32_t>(name.size());
  request.second_bytes = static_cast<std::uint32_t>(second.size());
  request_.header = request;
  request_.name = name;
  request_.second = second;
  // A read is made later, into the buffers of its answer.
  if (static_cast<FileCall>(request.call) != FileCall::read) outcome_ = perform(data, data_bytes);
  return true;
}

Outcome LocalConnection::perform(Buffers data, std::uint64_t data_bytes) {
  if (!is_valid(request_.header)) return {.error = EINVAL};
  switch (static_cast<FileCall>(request_.header.call)) {
    case FileCall::write:
    case FileCall::append:
      return write(data, data_bytes);
    case FileCall::copy:
      return copy();
    case FileCall::set_xattr: {
      if (const int error = calls_.refused(request_); error != 0) return {.error = error};
      return calls_.set_xattr(request_, gathered(data, data_bytes));
    }
    case FileCall::await_recalls:
      return {.error = EOPNOTSUPP};
    default:
      return calls_.perform(request_);
  }
}

Outcome LocalConnection::write(Buffers data, std::uint64_t data_bytes) {
  const bool appends = static_cast<FileCall>(request_.header.call) == FileCall::append;
  const auto* const file = handles_.find(request_.header.handle);
  if (const int error = calls_.refused(request_); error != 0) return {.error = error};
  if (file == nullptr) return {.error = EBADF};
  if (appends != file->appends || (!appends && request_.header.offset > INT64_MAX - data_bytes))
    return {.error = EINVAL};
  if (appends) return calls_.append(request_, gathered(data, data_bytes));
  Outcome outcome;
  while (outcome.value < data_bytes) {
    const auto part = data.front(data_bytes - outcome.value);
    const iovec buffer{part.data(), part.size()};
    const ssize_t put = file->backing->write(std::span(&buffer, 1), request_.header.offset + outcome.value);
    if (put <= 0) {
      outcome.error = put < 0 ? errno : EIO;
      break;
    }
    outcome.value += static_cast<std::uint64_t>(put);
    data.skip(static_cast<std::size_t>(put));
  }
  return outcome;
}

Outcome LocalConnection::copy() {
  CopyPlan plan{};
  Outcome outcome{.error = calls_.plan_copy(request_, plan)};
  while (outcome.error == 0 && outcome.value < plan.length) {
    const ssize_t got = plan.from->copy(plan.offset + outcome.value, *plan.to, plan.to_offset + outcome.value,
                                        plan.length - outcome.value);
    if (got < 0) outcome.error = errno;
    if (got <= 0) break;
    outcome.value += static_cast<std::uint64_t>(got);
  }
  return outcome;
}

FileAnswer LocalConnection::head() const {
  return {.id = request_.header.id,
          .last = 1,
          .error = static_cast<std::uint32_t>(outcome_.error),
          .payload_bytes = static_cast<std::uint32_t>(outcome_.payload.size()),
          .value = outcome_.value,
          .position = outcome_.position};
}

std::optional<FileAnswer> LocalConnection::receive(std::span<std::byte> payload) {
  if (outcome_.payload.size() != (outcome_.error == 0 ? payload.size() : 0)) return {};
  std::ranges::copy(outcome_.payload, payload.begin());
  return head();
}

std::optional<FileAnswer> LocalConnection::receive(std::vector<std::byte>& payload, std::size_t most) {
  if (outcome_.payload.size() > most) return {};
  payload = std::move(outcome_.payload);
  outcome_.payload.clear();
  return head();
}

std::optional<HostConnection::Read> LocalConnection::receive_data(Buffers into, std::uint64_t length) {
  const NotCancelled here;
  const auto* const file = handles_.find(request_.header.handle);
  if (file == nullptr) return Read{0, EBADF};
  if (request_.header.offset > INT64_MAX - length) return Read{0, EINVAL};
  Read read{};
  while (read.bytes < length) {
    const auto part = into.front(length - read.bytes);
    const iovec buffer{part.data(), part.size()};
    const ssize_t got = file->backing->read(std::span(&buffer, 1), request_.header.offset + read.bytes);
    if (got < 0) read.error = errno;
    if (got <= 0) break;
    read.bytes += static_cast<std::uint64_t>(got);
    into.skip(static_cast<std::size_t>(got));
  }
  return read;
}

}  // namespace wherry::file::mount
