// SPDX-License-Identifier: Apache-2.0
// Lists directories.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "file/client/host.hpp"

namespace wherry::file {
namespace {

/// Takes a record off the front. False: the rest is too short.
template <class T>
bool take_record(std::span<const std::byte>& rest, T& record) {
  if (rest.size() < sizeof record) return false;
  std::memcpy(&record, rest.data(), sizeof record);
  rest = rest.subspan(sizeof record);
  return true;
}

/// As above, for an entry with its status and name.
bool take_entry(std::span<const std::byte>& rest, bool with_status, Host::Entry& entry) {
  layout::FileEntry head{};
  layout::FileStatus status{};
  if (!take_record(rest, head) || (with_status && !take_record(rest, status))) return false;
  if (head.name_bytes == 0 || head.name_bytes > std::min<std::size_t>(rest.size(), layout::kFileMaxEntryName))
    return false;
  const auto name = rest.first(head.name_bytes);
  rest = rest.subspan(head.name_bytes);
  entry = {.inode = head.inode,
           .cookie = head.cookie,
           .type = head.type,
           .name = {reinterpret_cast<const char*>(name.data()), name.size()}};
  if (status.mode != 0) entry.status = status;
  return true;
}

}  // namespace

int Host::list(Handle handle, const layout::FileRequest& request, std::vector<Entry>& entries) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  Asked asked{.request = request};
  asked.request.call = static_cast<std::uint32_t>(layout::FileCall::list);
  std::vector<std::byte> payload;
  if (const int error = link_.call(asked, file.get(), payload, layout::kFileMaxList); error != 0) return error;
  entries.clear();
  for (std::span<const std::byte> rest = payload; !rest.empty();) {
    Entry entry{};
    if (!take_entry(rest, request.flags != 0, entry)) return EIO;
    entries.push_back(std::move(entry));
  }
  return 0;
}

int Host::list(Handle handle, std::uint64_t cookie, std::vector<Entry>& entries) {
  layout::FileRequest request{};
  request.offset = cookie;
  request.length = layout::kFileMaxList;
  return list(handle, request, entries);
}

int Host::list_with_status(Handle handle, std::uint64_t cookie, std::size_t room, std::vector<Entry>& entries) {
  layout::FileRequest request{};
  request.offset = cookie;
  request.length = room;
  request.flags = layout::kFileListStatus;
  return list(handle, request, entries);
}

}  // namespace wherry::file
