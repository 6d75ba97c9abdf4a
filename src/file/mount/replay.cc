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

/// Of appends in one request, since the one that was on its way may have written some of them. What others append
/// meanwhile stays. A request has this many bytes at most: more than that which was on its way.
constexpr std::size_t kMostAppended = std::size_t{4} << 20;

int append_left(const WriteBuffer& buffer, const LeftFile& left, Host& host, Host::Handle handle, std::size_t& bytes) {
  std::vector<std::byte> data;
  std::uint64_t offset = buffer.offset(left.records.front());
  const auto append = [&]() -> int {
    const Result written = host.append_again(handle, offset, data);
    bytes += written.bytes;
    offset += written.bytes;
    if (written.bytes != data.size()) return written.failed() ? written.error : EIO;
    data.clear();
    return 0;
  };
  for (const WriteBuffer::RecordNumber record : left.records) {
    const auto more = buffer.data(record);
    if (data.size() + more.size() > kMostAppended) {
      if (const int error = append(); error != 0) return error;
    }
    data.insert(data.end(), more.begin(), more.end());
  }
  return append();
}

int write_at_offsets(const WriteBuffer& buffer, const LeftFile& left, Host& host, Host::Handle handle,
                     std::size_t& bytes) {
  for (const WriteBuffer::RecordNumber record : left.records) {
    auto rest = buffer.data(record);
    std::uint64_t offset = buffer.offset(record);
    while (!rest.empty()) {
      const Result written = host.write(handle, offset, rest);
      if (written.bytes == 0) return written.failed() ? written.error : EIO;
      offset += written.bytes;
      rest = rest.subspan(written.bytes);
      bytes += written.bytes;
    }
  }
  return 0;
}

Replayed write_left(const WriteBuffer& buffer, const LeftFile& left, Host& host) {
  Replayed replayed{.name = left.name, .identity = left.identity};
  const std::uint32_t flags =
      layout::kFileOpenWrite | layout::kFileOpenNoFollow | (left.appends ? layout::kFileOpenAppend : 0);
  Host::Opened opened = host.open(left.name, flags | layout::kFileOpenRead);
  const bool reads = opened.error != EACCES;
  if (!reads) opened = host.open(left.name, flags);
  const bool is_gone = opened.error == ENOENT || opened.error == ENOTDIR || opened.error == ELOOP;
  replayed.error = is_gone ? ESTALE : opened.error;
  if (opened.error != 0) return replayed;
  const bool begun = reads && has_begun(buffer, left, host, opened.handle);
  if (!is_same_file(identity_of(opened.status), left.identity) || !is_unchanged(buffer, left, opened.status, begun))
    replayed.error = ESTALE;
  if (replayed.error == 0)
    replayed.error = (left.appends ? append_left : write_at_offsets)(buffer, left, host, opened.handle, replayed.bytes);
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
