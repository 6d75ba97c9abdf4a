// SPDX-License-Identifier: Apache-2.0
// Lists of a directory.
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

#include "file/server/server_calls.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

/// Entries with a status are counted in units of this, as the kernel of a client that hands them on does.
constexpr std::size_t kEntryUnit = 8;

std::size_t listed_bytes(std::string_view name) {
  const std::size_t bytes = sizeof(layout::FileEntry) + sizeof(layout::FileStatus) + name.size();
  return (bytes + kEntryUnit - 1) / kEntryUnit * kEntryUnit;
}

template <class T>
void append_bytes(std::vector<std::byte>& to, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// What lies above the directory is not the client's to see, and what was removed is not there: zeros.
layout::FileStatus entry_status(int directory, const char* name) {
  layout::FileStatus status{};
  const std::string_view text = name;
  if (text == "." || text == ".." || status_of(directory, name, status) != 0) return {};
  return status;
}

}  // namespace

Outcome Calls::list(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  if ((request.header.flags & ~layout::kFileListStatus) != 0) return {.error = EINVAL};
  const int directory = file->backing->descriptor();
  if (::lseek(directory, static_cast<off_t>(request.header.offset), SEEK_SET) < 0) return {.error = errno};
  const bool with_status = request.header.flags != 0;
  const std::uint64_t room = std::min(request.header.length, layout::kFileMaxList);
  alignas(dirent64) std::array<char, layout::kFileMaxList / 2> raw;
  const std::size_t raw_room = std::min<std::uint64_t>(raw.size(), with_status ? room / 2 : room);
  const long got = ::syscall(SYS_getdents64, directory, raw.data(), raw_room);
  if (got < 0) return {.error = errno};
  Outcome outcome;
  std::size_t listed = 0;
  for (long at = 0; at < got;) {
    const auto* const entry = reinterpret_cast<const dirent64*>(raw.data() + at);
    const std::string_view name = entry->d_name;
    listed += listed_bytes(name);
    if (with_status && listed > room) break;  // the next request begins with it
    const layout::FileEntry told{.inode = entry->d_ino,
                                 .cookie = static_cast<std::uint64_t>(entry->d_off),
                                 .type = entry->d_type,
                                 .name_bytes = static_cast<std::uint32_t>(name.size())};
    append_bytes(outcome.payload, std::span(&told, 1));
    if (with_status) {
      const layout::FileStatus status = entry_status(directory, entry->d_name);
      append_bytes(outcome.payload, std::span(&status, 1));
    }
    append_bytes(outcome.payload, std::span(name));
    at += entry->d_reclen;
  }
  if (got > 0 && outcome.payload.empty()) return {.error = EINVAL};  // as getdents without room for one
  return outcome;
}

}  // namespace wherry::file
