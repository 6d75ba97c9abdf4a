// SPDX-License-Identifier: Apache-2.0
// Lists directories.
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "file/server/server_calls.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

/// Unit of entries with a status, as in the kernel (FUSE) of a client that passes them on.
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

/// All zeros for "..", which may lie outside, for ".", and for an entry that was removed.
layout::FileStatus entry_status(int directory, const char* name) {
  layout::FileStatus status{};
  const std::string_view text = name;
  if (text == "." || text == ".." || status_of(directory, name, status) != 0) return {};
  return status;
}

/// The answer to one request.
class List {
 public:
  List(int directory, bool with_status, std::uint64_t room)
      : directory_(directory), with_status_(with_status), room_(room) {}

  Outcome make();

 private:
  [[nodiscard]] std::size_t raw_room() const;
  [[nodiscard]] bool is_full() const { return !with_status_ || raw_room() < kLeastRaw; }
  bool add(const dirent64& entry);

  /// Raw bytes of an entry with a name of one byte: 24, which become 160 with a status. No other name grows more.
  static constexpr std::size_t kLeastRaw = (offsetof(dirent64, d_name) + 2 + kEntryUnit - 1) / kEntryUnit * kEntryUnit;

  int directory_;
  bool with_status_;
  std::uint64_t room_;  ///< bytes left
  std::vector<std::byte> payload_{};
  alignas(dirent64) std::array<char, layout::kFileMaxList / 2> raw_;
};

/// At most what fits with statuses. Seeking back to the rest would skip names on tmpfs before Linux 6.6, if others were
/// removed meanwhile.
std::size_t List::raw_room() const {
  return std::min<std::uint64_t>(raw_.size(), with_status_ ? room_ * kLeastRaw / listed_bytes("n") : room_);
}

/// False: the entry does not fit.
bool List::add(const dirent64& entry) {
  const std::string_view name = entry.d_name;
  if (name.size() > layout::kFileMaxEntryName) return true;
  const std::size_t bytes = listed_bytes(name);
  if (with_status_ && bytes > room_) return false;
  room_ -= std::min<std::uint64_t>(room_, bytes);
  const layout::FileEntry told{.inode = entry.d_ino,
                               .cookie = static_cast<std::uint64_t>(entry.d_off),
                               .type = entry.d_type,
                               .name_bytes = static_cast<std::uint32_t>(name.size())};
  append_bytes(payload_, std::span(&told, 1));
  if (with_status_) {
    const layout::FileStatus status = entry_status(directory_, entry.d_name);
    append_bytes(payload_, std::span(&status, 1));
  }
  append_bytes(payload_, std::span(name));
  return true;
}

Outcome List::make() {
  std::size_t wanted = std::max(raw_room(), with_status_ ? kLeastRaw : 0);
  while (true) {
    const long got = ::syscall(SYS_getdents64, directory_, raw_.data(), wanted);
    if (got < 0 && errno == EINVAL && with_status_ && payload_.empty() && wanted < raw_.size()) {
      wanted = std::min(wanted * 2, raw_.size());  // a long name, which may fit
      continue;
    }
    if (got < 0 && payload_.empty()) return {.error = errno};
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(raw_.data() + at);
      if (!add(*entry)) {
        if (payload_.empty()) return {.error = EINVAL};  // as getdents does if not even one entry fits
        return {.payload = std::move(payload_)};         // the next request starts with this entry
      }
      at += entry->d_reclen;
    }
    if (got <= 0 || (is_full() && !payload_.empty())) return {.payload = std::move(payload_)};
    wanted = std::max(raw_room(), kLeastRaw);
  }
}

}  // namespace

Outcome Calls::list(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  if ((request.header.flags & ~layout::kFileListStatus) != 0) return {.error = EINVAL};
  const int directory = file->backing->descriptor();
  if (::lseek(directory, static_cast<off_t>(request.header.offset), SEEK_SET) < 0) return {.error = errno};
  return List(directory, request.header.flags != 0, std::min(request.header.length, layout::kFileMaxList)).make();
}

}  // namespace wherry::file
