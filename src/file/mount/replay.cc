// SPDX-License-Identifier: Apache-2.0
#include "file/mount/replay.hpp"

#include <algorithm>
#include <cerrno>

#include "file/wire/status.hpp"

namespace wherry::file::mount {
namespace {

using LeftFile = WriteBuffer::LeftFile;

/// The end of the first records, which one request may have had.
std::uint64_t end_of_first(const WriteBuffer& buffer, const LeftFile& left) {
  std::uint64_t end = buffer.offset(left.records.front());
  for (const WriteBuffer::RecordNumber record : left.records) {
    if (buffer.offset(record) != end) break;
    end += buffer.data(record).size();
  }
  return end;
}

/// Whether a request that was on its way has written the beginning of the first record, up to the end of a page.
bool has_begun(const WriteBuffer& buffer, const LeftFile& left, Host& host, Host::Handle handle) {
  constexpr std::size_t kPage = 4096;
  const std::uint64_t offset = buffer.offset(left.records.front());
  const auto data = buffer.data(left.records.front());
  const auto first = data.first(std::min<std::size_t>(data.size(), kPage - offset % kPage));
  std::vector<std::byte> there(first.size());
  return left.sending && host.read(handle, offset, there).bytes == there.size() && std::ranges::equal(there, first);
}

bool is_unchanged(const WriteBuffer& buffer, const LeftFile& left, const layout::FileStatus& now, bool begun) {
  if (begun) return now.size >= left.size && now.size <= std::max(left.size, end_of_first(buffer, left));
  return now.size == left.size && nanoseconds_of(now.modified) == left.modified;
}

Replayed write_left(const WriteBuffer& buffer, const LeftFile& left, Host& host) {
  Replayed replayed{.name = left.name, .identity = left.identity};
  constexpr std::uint32_t kFlags = layout::kFileOpenWrite | layout::kFileOpenNoFollow;
  Host::Opened opened = host.open(left.name, kFlags | layout::kFileOpenRead);
  const bool reads = opened.error != EACCES;
  if (!reads) opened = host.open(left.name, kFlags);
  const bool is_gone = opened.error == ENOENT || opened.error == ENOTDIR || opened.error == ELOOP;
  replayed.error = is_gone ? ESTALE : opened.error;
  if (opened.error != 0) return replayed;
  const bool begun = reads && has_begun(buffer, left, host, opened.handle);
  if (!is_same_file(identity_of(opened.status), left.identity) || !is_unchanged(buffer, left, opened.status, begun))
    replayed.error = ESTALE;
  for (const WriteBuffer::RecordNumber record : left.records) {
    auto rest = buffer.data(record);
    std::uint64_t offset = buffer.offset(record);
    while (replayed.error == 0 && !rest.empty()) {
      const Result written = host.write(opened.handle, offset, rest);
      if (written.bytes == 0) replayed.error = written.failed() ? written.error : EIO;
      offset += written.bytes;
      rest = rest.subspan(written.bytes);
      replayed.bytes += written.bytes;
    }
  }
  if (const int error = host.close(opened.handle); replayed.error == 0) replayed.error = error;
  return replayed;
}

}  // namespace

bool is_same_file(Identity one, const Identity& other) {
  one.type = other.type;
  return one == other;
}

std::vector<Replayed> replay(WriteBuffer& left, Host& host, const std::function<void(const Replayed&)>& tell) {
  std::vector<Replayed> all;
  for (const LeftFile& file : left.left()) {
    if (!file.records.empty()) {
      all.push_back(write_left(left, file, host));
      if (tell) tell(all.back());
    }
    for (const WriteBuffer::RecordNumber record : file.records) left.remove(record);
    left.remove_file(file.number);
  }
  return all;
}

}  // namespace wherry::file::mount
