// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_names.hpp"

#include <span>
#include <vector>

#include "file/client/bytes.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;

}  // namespace

int HostNames::call(FileCall call, std::string_view name, std::string_view second, std::uint32_t flags,
                    std::uint32_t mode, std::uint64_t offset, std::span<std::byte> payload) {
  const std::lock_guard lock(link_.mutex());
  HostLink::Asked asked{.name = name, .second = second};
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags = flags;
  asked.request.mode = mode;
  asked.request.offset = offset;
  return link_.call(asked, nullptr, payload);
}

int HostNames::status(std::string_view name, bool follow, layout::FileStatus& status) {
  return call(FileCall::status, name, {}, follow ? 0 : layout::kFileLookNoFollow, 0, 0, bytes_of(status));
}

int HostNames::file_system(std::string_view name, layout::FileSystemStatus& status) {
  return call(FileCall::file_system, name, {}, 0, 0, 0, bytes_of(status));
}

int HostNames::set_size(std::string_view name, std::uint64_t size) {
  return call(FileCall::set_size, name, {}, 0, 0, size);
}

int HostNames::set_mode(std::string_view name, std::uint32_t mode) {
  return call(FileCall::set_mode, name, {}, 0, mode);
}

int HostNames::set_owner(std::string_view name, bool follow, std::uint32_t user, std::uint32_t group) {
  const std::lock_guard lock(link_.mutex());
  HostLink::Asked asked{.name = name};
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_owner);
  asked.request.flags = follow ? 0 : layout::kFileLookNoFollow;
  asked.request.offset = user;
  asked.request.length = group;
  return link_.call(asked, nullptr);
}

int HostNames::set_times(std::string_view name, bool follow, const layout::FileTimes& times) {
  const auto second = text_of(std::as_bytes(std::span(&times, 1)));
  return call(FileCall::set_times, name, second, follow ? 0 : layout::kFileLookNoFollow);
}

int HostNames::make_directory(std::string_view name, std::uint32_t mode) {
  return call(FileCall::make_directory, name, {}, 0, mode);
}

int HostNames::make_node(std::string_view name, layout::FileNode type, std::uint32_t mode) {
  return call(FileCall::make_node, name, {}, static_cast<std::uint32_t>(type), mode);
}

int HostNames::remove(std::string_view name, bool directory) {
  return call(FileCall::remove, name, {}, directory ? layout::kFileRemoveDirectory : 0);
}

int HostNames::rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  const std::lock_guard lock(link_.mutex());
  HostLink::Asked asked{.name = from, .second = to};
  asked.request.call = static_cast<std::uint32_t>(FileCall::rename);
  asked.request.flags = flags;
  return link_.rename(asked, {from, to, (flags & layout::kFileRenameExchange) != 0});
}

void HostNames::announce_rename(std::string_view from, std::string_view to, std::uint32_t flags) {
  link_.announce_rename({from, to, (flags & layout::kFileRenameExchange) != 0});
}

void HostNames::settle_rename(std::string_view from, std::string_view to, std::uint32_t flags, bool is_made) {
  link_.settle_rename({from, to, (flags & layout::kFileRenameExchange) != 0}, is_made);
}

std::vector<std::string> HostNames::later_names(std::string_view name) {
  const std::lock_guard lock(link_.mutex());
  return link_.later_names(std::string(name));
}

int HostNames::link(std::string_view from, std::string_view to) { return call(FileCall::link, from, to); }

int HostNames::symlink(std::string_view name, std::string_view target) { return call(FileCall::symlink, name, target); }

int HostNames::read_link(std::string_view name, std::string& target) {
  const std::lock_guard lock(link_.mutex());
  HostLink::Asked asked{.name = name};
  asked.request.call = static_cast<std::uint32_t>(FileCall::read_link);
  std::vector<std::byte> payload;
  const int error = link_.call(asked, nullptr, payload, layout::kFileMaxName + 1);
  if (error == 0) target = text_of(payload);
  return error;
}

}  // namespace wherry::file
